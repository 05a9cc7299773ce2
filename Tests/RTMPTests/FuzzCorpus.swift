import NIOCore
import RTMP

/// Hand-made sessions that reach code no capture reaches.
enum FuzzCorpus {
    private static func chunks(_ messages: [Message]) -> [UInt8] {
        var out = ByteBuffer()
        for message in messages { ChunkEncoder().encode(message, chunkStream: message.type.rawValue < 7 ? 2 : 3, into: &out) }
        return Array(out.readableBytesView)
    }

    private static let enhanced: AMF0Value = [
        "app": "live", "tcUrl": "rtmp://h/live", "objectEncoding": 3, "capsEx": 15, "fourCcList": .strictArray(["hvc1"]),
        "videoFourCcInfoMap": ["av01": 7],
    ]

    private static let spoken: [(command: Command, on: UInt32)] = [
        (Command("connect", transaction: 1, object: enhanced), 0),
        (Command("createStream", transaction: 2), 0), (Command("createStream", transaction: 3), 0),
        (Command("releaseStream", transaction: 4, arguments: ["cam"]), 0), (Command("FCPublish", transaction: 5, arguments: ["cam"]), 0),
        (Command("publish", transaction: 6, arguments: ["cam?k=v", "live"]), 1), (Command("play", arguments: ["cam", -2000, -1, true]), 2),
        (Command("pause", arguments: [true, 0]), 2), (Command("seek", arguments: [5]), 2), (Command("receiveAudio", arguments: [false]), 2),
        (Command("receiveVideo", arguments: [true]), 2), (Command("getStreamLength", transaction: 7, arguments: ["cam"]), 0),
        (Command("play2", arguments: [["streamName": "x"]]), 2), (Command("_checkbw", transaction: 8), 0),
        (Command("nothing", transaction: 9), 0),
        (Command("FCSubscribe", transaction: 10, arguments: ["cam"]), 0), (Command("FCUnpublish", arguments: ["cam?k=v"]), 0),
        (Command("closeStream"), 2), (Command("deleteStream", arguments: [1]), 0), (Command("close"), 0),
    ]

    static let commands = chunks(spoken.map { $0.command.message(streamID: $0.on, amf3: $0.on == 2) })

    static let commandBodies =
        spoken.map { Array($0.command.message(streamID: 0).payload.readableBytesView) } + [
            // Every AMF0 type as an argument, and AMF3 behind 0x11.
            hex("020001610000000000000000000506 0100 0b000000000000000000 00 07 0000"),
            hex("02000161 00 3ff0000000000000 05 0a00000002 05 06 0800000001 000161 05 000009 0c00000001 61 0f00000001 61"),
            hex("00 02000161 00 3ff0000000000000 11 0a0b0103 6104 05 01 11 0905 01 0401 0402 11 0801 0000000000000000"),
            hex("02000161 00 3ff0000000000000 10 000161 000162 03 000163 070000 000009 000009"),
        ]

    static let control: [UInt8] = {
        let events: [UserControlEvent] = [
            .streamBegin(1), .streamEOF(1), .streamDry(1), .setBufferLength(streamID: 1, milliseconds: 3000), .pingRequest(4),
            .pingResponse(4),
            .other(31),
        ]
        let controls: [ControlMessage] = [
            .windowAcknowledgementSize(50), .setPeerBandwidth(70, .hard), .acknowledgement(9), .setChunkSize(16), .abort(chunkStream: 3),
            .setChunkSize(128),
        ]
        return chunks(controls.map(\.message) + events.map { ControlMessage.userControl($0).message })
    }()

    /// Every header form, extended timestamps and an abort.
    static let headers: [UInt8] = {
        var chunks = Chunks()
        chunks.control(1, 8)
        for (index, id) in [4, 63, 64, 319, 320, 65599].enumerated() {
            let time: UInt32 = index & 1 == 0 ? 9 : 0x0102_0304
            let extended: UInt32? = index & 1 == 0 ? nil : time
            chunks.add(0, id, time: time, length: 20, type: 9, pattern(8))
            chunks.add(3, id, extended: extended, pattern(8))
            chunks.add(3, id, extended: extended, pattern(4))
            chunks.add(1, id, time: 5, length: 3, type: 8, pattern(3))
            chunks.add(2, id, time: 5, pattern(3))
            chunks.add(3, id, pattern(3))
        }
        chunks.add(0, 5, length: 5000, type: 9, pattern(8))
        chunks.control(2, 5)
        chunks.control(1, 0x7FFF_FFFF)
        chunks.add(3, 5, pattern(50))
        return chunks.bytes
    }()

    static let aggregate: [UInt8] = {
        let body = (0..<5).flatMap { index in
            [UInt8(8 + index % 2)] + Chunks.bigEndian(12, 3) + Chunks.bigEndian(UInt32(40 * index), 3) + [0, 0, 0, 0] + pattern(12)
                + Chunks.bigEndian(23, 4)
        }
        var chunks = Chunks()
        chunks.control(1, 64)
        for round in 0..<2 {
            chunks.add(0, 6, time: UInt32(round * 200), length: body.count, type: 22, Array(body.prefix(64)))
            chunks.add(3, 6, Array(body.dropFirst(64).prefix(64)))
            chunks.add(3, 6, Array(body.dropFirst(128)))
        }
        return chunks.bytes
    }()

    /// The messages of a server to a client that connects, publishes and plays.
    static let answers = chunks([
        ControlMessage.windowAcknowledgementSize(60).message, ControlMessage.setPeerBandwidth(60, .dynamic).message,
        Command("_result", transaction: 1, object: ["fmsVer": "x"], arguments: [["code": "NetConnection.Connect.Success"]]).message(
            streamID: 0),
        Command("_result", transaction: 2, arguments: [1]).message(streamID: 0),
        Command("onStatus", arguments: [["level": "status", "code": "NetStream.Publish.Start"]]).message(streamID: 1),
        Command("onStatus", arguments: [["level": "error", "code": "NetStream.Play.StreamNotFound"]]).message(streamID: 2, amf3: true),
        Command("_error", transaction: 3, arguments: [["code": "NetConnection.Call.Failed"]]).message(streamID: 0),
        Command("onStatus", arguments: [["level": "status", "code": "NetStream.Play.UnpublishNotify"]]).message(streamID: 2),
        ControlMessage.userControl(.streamEOF(2)).message, ControlMessage.userControl(.pingRequest(2)).message,
    ])

    static let lastStreamID = chunks([
        Command("connect", transaction: 1, object: ["app": "live"]).message(streamID: 0),
        Command("publish", transaction: 2, arguments: ["cam", "live"]).message(streamID: .max),
        Command("createStream", transaction: 3).message(streamID: 0), Command("createStream", transaction: 4).message(streamID: 0),
        Command("publish", transaction: 5, arguments: ["cam2", "live"]).message(streamID: 1),
    ])
}
