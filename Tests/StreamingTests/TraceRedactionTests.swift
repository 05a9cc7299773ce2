import NIOCore
import RTMP
import Support
import TestSupport
import Testing
import Trace

@testable import Streaming

/// The parts of a peer's messages that a trace shows. No secret is among them.
@Suite struct TraceRedactionTests {
    @Test(arguments: [
        ("live", "live"), ("live/cam1", "live/cam1"), ("cam1?txSecret=abc&txTime=5C271099", "cam1?txSecret=***&txTime=***"),
        ("rtmp://10.0.0.1:1935/live", "rtmp://10.0.0.1:1935/live"), ("rtmp://host/live?token=x", "rtmp://host/live?token=***"),
        ("rtmp://user:pa/ss@host/live", "rtmp://***@host/live"), ("rtmp://user:pa?ss@host/live", "rtmp://***"),
        ("cam&key=1", "cam?key=***"), ("cam%3Fkey=1", "cam?key=***"), ("cam%3fkey=1;pass=2#3", "cam?key=***&pass=***&***"),
        ("live/token=abc/x", "live/***/x"), ("live/a%253Ftoken%253Dabc", "live/***"), ("cam?stranger=1&abcdef", "cam?***&***"),
        ("/live/cam.hls/media.m3u8?s=0f1e&_HLS_msn=7&_HLS_part=2", "/live/cam.hls/media.m3u8?s=***&_HLS_msn=7&_HLS_part=2"),
        ("cam?_HLS_msn=abcdefabcdefabcdef", "cam?_HLS_msn=***"), ("cam?TOKEN=1", "cam?TOKEN=***"), ("cam\u{1b}[31m\n", "cam?[31m?"),
        ("live/eyJhbGciOiJIUzI1NiJ9.e30.abc", "live/***"), ("", ""),
    ])
    func addresses(_ sent: String, _ shown: String) {
        #expect(TraceRedaction.address(sent) == shown)
    }

    @Test func aLongQueryIsCut() {
        let query = (0..<500).map { "token=\($0)" }.joined(separator: "&")
        let shown = TraceRedaction.address("cam?\(query)")
        #expect(shown == "cam?" + Array(repeating: "token=***", count: 12).joined(separator: "&") + "&…")
    }

    @Test func namesOfClients() {
        #expect(TraceRedaction.plain("FMLE/3.0 (compatible; Lavf59.27.100)") == "FMLE/3.0 (compatible; Lavf59.27.100)")
        #expect(TraceRedaction.plain("client token=abc") == "string(16)")
        #expect(TraceRedaction.plain(String(repeating: "x", count: 500)).count == 64)
    }

    /// Commands that ffmpeg sends to connect, publish and play.
    @Test func commands() {
        let connect = Command(
            "connect", transaction: 1,
            object: [
                "app": "live", "type": "nonprivate", "flashVer": "FMLE/3.0", "tcUrl": "rtmp://h/live", "fpad": false,
                "fourCcList": .strictArray(["av01"]),
            ])
        #expect(
            Self.entry(connect)
                == TraceEntry(
                    atMs: 5, .received, .command, "connect",
                    "app=live type=nonprivate flashVer=FMLE/3.0 tcUrl=rtmp://h/live fpad=false fourCcList=array(1)", streamID: 0,
                    transaction: 1))
        let shown = { (command: Command) in Self.entry(command, on: 1).text }
        #expect(shown(Command("publish", transaction: 5, arguments: ["cam?key=x", "live"])) == "cam?key=*** live")
        #expect(shown(Command("play", transaction: 4, arguments: ["cam", .number(-2_000), .number(0.5), true])) == "cam -2000 0.5 true")
        #expect(shown(Command("deleteStream", arguments: [1])) == "1")
        #expect(shown(Command("login", arguments: ["me", 1_234, true])) == "string(2) number boolean")
        let status = Command("onStatus", arguments: [Status(StatusCode.publishStart, "Publishing.").object()])
        #expect(Self.entry(status, .sent).text == "NetStream.Publish.Start")
        let refusal = Command("onStatus", arguments: [Status(StatusCode.playFailed, level: .error, "[kicked] Gone.").object()])
        #expect(
            Self.entry(refusal, .sent).text == "NetStream.Play.Failed: [kicked] Gone."
                && Self.entry(refusal).text == "NetStream.Play.Failed")
        let unknown = Command("_error", arguments: [Status(StatusCode.callFailed, level: .error, "There is no method s3cret.").object()])
        #expect(Self.entry(unknown, .sent).text == "NetConnection.Call.Failed")
        #expect(Self.entry(status).text == "NetStream.Publish.Start")
        #expect(Self.entry(Command("_result", transaction: 2, arguments: [1]), .sent).text == "1")
    }

    @Test func messagesThatCannotBeShown() {
        func text(_ bytes: [UInt8]) -> String {
            let entry = TraceEntry.message(Message(type: .commandAMF0, payload: ByteBuffer(bytes: bytes)), .received, atMs: 0)
            return "\(entry.name) \(entry.text)"
        }
        #expect(text([]) == "unread 0 bytes")
        #expect(text([2, 255, 255]) == "unread 3 bytes, malformed")
        #expect(text([UInt8](repeating: 5, count: 4_097)) == "unread 4097 bytes, too long to show")
        #expect(Self.entry(Command("")).name == "unnamed")
        #expect(Self.entry(Command("s3cret")).name == "unknown(6)")
    }

    @Test func controlMessages() {
        func text(_ control: ControlMessage) -> String {
            let entry = TraceEntry.message(control.message, .sent, atMs: 0)
            return "\(entry.name) \(entry.text)"
        }
        #expect(text(.setChunkSize(60_000)) == "setChunkSize 60000")
        #expect(text(.userControl(.streamBegin(1))) == "streamBegin 1")
        #expect(text(.setPeerBandwidth(5, .dynamic)) == "setPeerBandwidth 5 dynamic")
        #expect(TraceEntry.isHousekeeping(ControlMessage.acknowledgement(1).message))
        #expect(TraceEntry.isHousekeeping(ControlMessage.userControl(.pingResponse(1)).message))
        #expect(!TraceEntry.isHousekeeping(ControlMessage.userControl(.streamBegin(1)).message))
        let short = TraceEntry.message(Message(type: .setChunkSize, payload: ByteBuffer(bytes: [1])), .received, atMs: 0)
        #expect(short.name == "control" && short.text == "type 1, 1 bytes, malformed")
    }

    private static func entry(_ command: Command, _ direction: TraceDirection = .received, on streamID: UInt32 = 0) -> TraceEntry {
        .message(command.message(streamID: streamID), direction, atMs: 5)
    }

    /// A secret at every place where a peer can put one, in every encoding that a place allows.
    @Test(.seeded, arguments: 0..<200) func noSecretIsShown(_ part: Int) {
        var random = TestRandom(part)
        let secret = "S3cr" + String((0..<12).map { _ in "abcdefghijk0123456789".randomElement(using: &random) ?? "x" })
        let names = ["txSecret", "token", "jwt", "key", "password", "sign", "other", "", "%74oken", "TOKEN", secret]
        func pick(_ choices: [String]) -> String { choices.randomElement(using: &random) ?? "" }
        func query() -> String {
            (0..<Int.random(in: 1...3, using: &random)).map { _ in "\(pick(names))=\(secret)" }.joined(
                separator: pick(["&", ";", "#", "?"]))
        }
        func text() -> String {
            pick([
                "cam?\(query())", "cam&\(query())", "cam%3F\(query())", "cam%3f\(query())", "cam#\(query())", "rtmp://\(secret)@host/live",
                "rtmp://user:\(secret)@host/live/cam", "rtmp://user:a/\(secret)@host/live", "rtmp://user:\(secret)?x@host/live",
                "cam?\(secret)", "token=\(secret)", "live/token=\(secret)/cam", "rtmp://h/live?\(query())", "cam?\u{301}\(query())",
                "cam?a=b?\(query())", "cam%253Ftoken%253D\(secret)", "cam%26token=\(secret)",
            ])
        }
        func value(_ depth: Int = 0) -> AMF0Value {
            switch Int.random(in: 0...(depth < 3 ? 6 : 1), using: &random) {
            case 0: .string(text())
            case 1: .longString(text())
            case 2: .object([AMF0Property(name: pick(names), value: .string(secret)), AMF0Property(name: "x", value: value(depth + 1))])
            case 3: .ecmaArray([AMF0Property(name: "token", value: .string(secret))])
            case 4: .strictArray([.string(secret), value(depth + 1)])
            case 5: .xmlDocument(secret)
            default: .typedObject(className: secret, properties: [AMF0Property(name: "code", value: .string(secret))])
            }
        }
        let connected: [(String, AMF0Value)] =
            ["app", "tcUrl", "swfUrl", "pageUrl"].map { ($0, .string(text())) }
            + ["flashVer", "type", "fpad", "audioCodecs"].map { ($0, .string("x?" + query())) }
            + ["token", "earshotPath", "fourCcList", secret].map { ($0, value()) }
        let object = AMF0Value.object(connected.map { AMF0Property(name: $0.0, value: $0.1) })
        let commands = [
            "connect", "publish", "play", "releaseStream", "FCPublish", "FCUnpublish", "createStream", "onStatus", "_result", "_error",
            "login",
            "seek", secret, "",
        ]
        for name in commands {
            // The first argument of some is an address, the others are anything.
            let arguments: [AMF0Value] = [.string(text())] + (0..<3).map { _ in value() }
            let status = AMF0Value.object([
                AMF0Property(name: "level", value: .string(secret)), AMF0Property(name: "code", value: .string("NetStream.\(secret)")),
                AMF0Property(name: "description", value: .string(secret)),
            ])
            for arguments in [arguments, [status] + arguments, [.string("cam"), .string(secret), .string(secret)]] {
                let entry = Self.entry(Command(name, transaction: 1, object: object, arguments: arguments))
                #expect(!"\(entry.name) \(entry.text)".contains(secret.dropFirst(4)), "\(entry)")
            }
        }
        #expect(!TraceRedaction.query(query()).contains(secret.dropFirst(4)))
    }

    @Test func whatIsAbnormal() {
        #expect(CloseReason.protocolError.isAbnormal(isPublisher: false) && CloseReason.tooSlow.isAbnormal(isPublisher: false))
        #expect(CloseReason.connectionLost.isAbnormal(isPublisher: true) && !CloseReason.connectionLost.isAbnormal(isPublisher: false))
        for reason in [CloseReason.clientClosed, .kicked, .streamEnded, .serverShutdown, .takenOver, .overloaded, .rateLimited] {
            #expect(!reason.isAbnormal(isPublisher: true), "\(reason)")
        }
    }
}
