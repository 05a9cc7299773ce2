import NIOCore
import RTMP
import Testing

/// Command messages, types 20 and 17 (RTMP 1.0 §7.1.1).
@Suite struct CommandTests {
    private static let table: [(command: Command, hex: String)] = [
        (
            Command("connect", transaction: 1, object: ["app": "live"]),
            "020007636f6e6e656374003ff000000000000003000361707002 00046c697665000009"
        ),
        (Command("createStream", transaction: 2), "02000c63726561746553747265616d00400000000000000005"),
        (
            Command("publish", transaction: 5, arguments: ["cam1", "live"]),
            "0200077075626c6973680040140000000000000502000463616d310200046c697665"
        ),
        (
            Command("play", transaction: 4, arguments: ["cam1", -2000]),
            "020004706c61790040100000000000000502000463616d3100c09f400000000000"
        ),
        (Command("receiveAudio", arguments: [false]), "02000c72656365697665417564696f000000000000000000050100"),
        (Command(""), "02000000000000000000000005"),
    ]

    @Test(arguments: table) func `a command is the same both ways, as type 20 and 17`(command: Command, bytes: String) throws {
        #expect(command.message(streamID: 3) == Message(20, stream: 3, hex(bytes)))
        #expect(try Command(Message(20, hex(bytes)), limits: AMFLimits()) == command)
        #expect(command.message(streamID: 3, amf3: true) == Message(17, stream: 3, [0] + hex(bytes)))
        #expect(try Command(Message(17, [0] + hex(bytes)), limits: AMFLimits()) == command)
        // Some clients omit the zero byte.
        #expect(try Command(Message(17, hex(bytes)), limits: AMFLimits()) == command)
    }

    @Test func `type 17 may switch to AMF3 at any value`() throws {
        // "call", 3, then AMF3 null, AMF3 string "ab", AMF3 integer 5, AMF3 true.
        let bytes = hex("00 020004 63616c6c 00 4008000000000000 11 01 11 06 05 6162 11 04 05 11 03")
        let command = try Command(Message(17, bytes), limits: AMFLimits())
        #expect(command.name == "call" && command.transaction == 3)
        #expect(command.string(at: 0) == "ab")
        #expect(command.number(at: 1) == 5)
        #expect(command.boolean(at: 2) == true)
        #expect(command.number(at: 0) == nil && command.string(at: 3) == nil && command.boolean(at: -1) == nil)
    }

    @Test func `missing parts have their defaults`() throws {
        #expect(try Command(Message(20, []), limits: AMFLimits()) == Command(""))
        #expect(try Command(Message(20, hex("02000161")), limits: AMFLimits()) == Command("a"))
        #expect(try Command(Message(20, hex("02000161 003ff0000000000000")), limits: AMFLimits()) == Command("a", transaction: 1))
        // A name that is not a string counts as missing.
        #expect(try Command(Message(20, hex("05 05")), limits: AMFLimits()) == Command(""))
    }

    @Test(arguments: table) func `a command cut inside a value is malformed, never a trap`(command: Command, bytes: String) {
        let bytes = hex(bytes)
        for length in 1..<bytes.count {
            do throws(RTMPError) {
                let cut = try Command(Message(20, Array(bytes.prefix(length))), limits: AMFLimits())
                #expect(cut.name == command.name, "cut between two values at \(length)")
            } catch {
                guard case .malformedCommand(.truncated) = error else {
                    Issue.record("\(error)")
                    return
                }
            }
        }
    }

    @Test(arguments: [("03000161", "object"), ("0a00000001", "strict array"), ("0800000001000161", "ECMA array")])
    func `nesting 10,000 deep is refused`(opening: String, name: String) {
        let deep = hex("02000161 00 0000000000000000") + (0..<10_000).flatMap { _ in hex(opening) }
        #expect {
            try Command(Message(20, deep), limits: AMFLimits())
        } throws: { error in
            guard case .malformedCommand(.tooDeep(maximum: 32, _)) = error as? RTMPError else { return false }
            return true
        }
    }

    @Test(arguments: ["0affffffff", "0c7fffffff61", "02ffff61", "11097fffffff", "1109ffffffff01"]) func `lying counts are refused`(
        value: String
    ) {
        #expect(throws: RTMPError.self) {
            try Command(Message(20, hex("02000161 00 0000000000000000 05") + hex(value)), limits: AMFLimits())
        }
    }
}
