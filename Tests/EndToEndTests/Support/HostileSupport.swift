import EarshotServer
import NIOCore
import RTMP
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import Delivery
@testable import Listening

/// Suites of hostile clients, serialized: each measures time, and in parallel they would delay each other.
@Suite(.serialized) enum Hostile {}

extension TestServer {
    var port: Int { self.addresses.rtmp.port }

    func closed(_ reason: CloseReason) -> UInt64 { self.server.parts.connections.counters.current.closed[reason] ?? 0 }

    /// How often the limit was hit, as `/metrics` has it.
    func hits(_ limit: CountedLimit) -> UInt64 { self.server.parts.connections.counters.limits.current[limit] ?? 0 }

    /// Waits until the server has closed this connection, and expects one log line with the reason.
    func expectClosed(
        _ client: RawClient, _ reason: CloseReason, within seconds: Double = 60, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let remote = "remote=\(client.address) "
        var lines: [String] = []
        try? await eventually("the closing line", within: seconds) {
            lines = self.lines.all.filter { "\($0) ".contains(remote) && $0.contains("Connection closed") }
            return !lines.isEmpty
        }
        #expect(lines.count == 1, "one line for \(client.address) \(self.lines.all.suffix(8))", sourceLocation: sourceLocation)
        #expect(
            lines.first?.contains("reason=\(reason.rawValue) ") == true, "expected \(reason.rawValue): \(lines)",
            sourceLocation: sourceLocation)
        try await client.waitUntilClosed()
    }

    /// Waits until `count` connections are left, and checks that each closed one was counted once.
    func expectConnections(_ count: Int, within seconds: Double = 60, sourceLocation: SourceLocation = #_sourceLocation) async throws {
        try await self.wait("sessions", within: seconds) { $0["total"].int == count }
        let counters = self.server.parts.connections.counters.current
        let closed = counters.closed.values.reduce(0, +)
        #expect(counters.connectionsAccepted == closed + UInt64(count), sourceLocation: sourceLocation)
    }

    /// A player that gets all that is published from now on. `Play.Start` alone does not say so: the stream's home loop hears of a loop's
    /// first viewer a turn or more later.
    func player(of name: String, _ options: RawClient.Options = RawClient.Options()) async throws -> RawClient {
        let client = try await RawClient.playing(self.port, name, options)
        try await self.pass(client)
        // To the home loop, and back with what the stream holds.
        for _ in 0..<2 { _ = try await self.server.parts.streams.collect { _ in [true] } }
        return client
    }

    /// Runs a server and a canary while the body misbehaves.
    static func withCanary(
        _ configure: (inout ServerConfig) -> Void = { _ in }, sourceLocation: SourceLocation = #_sourceLocation,
        _ body: @escaping @Sendable (TestServer) async throws -> Void
    ) async throws {
        try await TestServer.run(configure) { server in
            let loops = try await server.server.parts.streams.collect { _ in [ThreadWait.current] }
            try await Canary.during(server.port, loops: loops, sourceLocation: sourceLocation) { try await body(server) }
        }
    }
}

/// Bytes of chunks as a malicious peer may write them.
struct RawBytes {
    private(set) var buffer = ByteBuffer()

    /// A fmt 0 header (RTMP 1.0 §5.3.1.2.1) with any claims, true or not; the chunk stream id in its shortest form.
    mutating func header(chunkStream: UInt32 = 3, timestamp: UInt32 = 0, length: UInt32, type: MessageType, streamID: UInt32 = 0) {
        switch chunkStream {
        case ..<64: self.buffer.writeInteger(UInt8(chunkStream))
        case ..<320: self.buffer.writeMultipleIntegers(UInt8(0), UInt8(chunkStream - 64))
        default:
            self.buffer.writeInteger(UInt8(1))
            self.buffer.writeInteger(UInt16(chunkStream - 64), endianness: .little)
        }
        for field in [timestamp, length] {
            self.buffer.writeMultipleIntegers(UInt8(truncatingIfNeeded: field >> 16), UInt16(truncatingIfNeeded: field))
        }
        self.buffer.writeInteger(type.rawValue)
        self.buffer.writeInteger(streamID, endianness: .little)
    }

    mutating func bytes(_ bytes: [UInt8]) { self.buffer.writeBytes(bytes) }

    mutating func repeating(_ byte: UInt8, _ count: Int) { self.buffer.writeRepeatingByte(byte, count: count) }
}

/// A generator whose numbers are the same in every run (SplitMix64).
struct SeededRandom: RandomNumberGenerator {
    private var state: UInt64
    init(_ seed: UInt64) { self.state = seed }

    mutating func next() -> UInt64 {
        self.state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = self.state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }

    mutating func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8.random(in: 0...255, using: &self) } }
}

extension RawClient {
    /// First arguments of the `_result` and `_error` answers so far, by transaction.
    var results: [Double: AMF0Value] {
        var results: [Double: AMF0Value] = [:]
        for received in self.received where received.message.type == .commandAMF0 {
            guard let command = try? Command(received.message, limits: AMFLimits()), ["_result", "_error"].contains(command.name) else {
                continue
            }
            results[command.transaction] = command.arguments.first ?? .null
        }
        return results
    }
}
