import EarshotServer
import FFmpeg
import Foundation
import Media
import NIOCore
import RTMP
import SignalCheck

/// A talk channel to test with: a server with a live room.
struct TalkRoom: Sendable {
    let server: TestServer
    let camera: RawClient
    let name = "r1"

    var port: Int { self.server.addresses.rtmp.port }

    /// Starts a server and pushes a camera to the room (`camera`: the name it pushes to, credential included), while the body runs.
    static func run(
        _ configure: (inout ServerConfig) -> Void = { _ in },
        camera: @Sendable (TestServer) async throws -> String = { _ in "r1" }, _ body: @Sendable (TalkRoom) async throws -> Void
    ) async throws {
        try await TestServer.run(configure) { server in
            let camera = try await RawClient.publishing(server.addresses.rtmp.port, try await camera(server))
            camera.send(.video, SyntheticTag.videoHeader)
            camera.send(.video, SyntheticTag.video(1, isKeyframe: true, bytes: 2_000))
            let room = TalkRoom(server: server, camera: camera)
            try await server.wait("rooms/r1") { $0["state"].string == "live" }
            try await body(room)
            await camera.close()
        }
    }

    func talk() async throws -> JSON { try await self.server.api("rooms/r1/talk") }

    func member(_ id: String) async throws -> JSON {
        try await self.talk()["members"].list.first { $0["userId"].string == id } ?? JSON(nil)
    }

    /// Kinds and participants of what happened to the floor, in order.
    func floorEvents() async throws -> [String] {
        let events = try await self.server.api("rooms/r1/events?limit=1000")["list"].list
        return events.filter { $0["kind"].string?.hasPrefix("talk.floor.") == true }.map {
            "\($0["kind"].string?.dropFirst("talk.floor.".count) ?? "") \($0["data"]["userId"].string ?? "?") \($0["data"]["reason"].string ?? "?")"
        }
    }

    func post(_ path: String, _ body: String) async throws -> HTTPAnswer {
        try await self.server.call("POST", "rooms/r1/talk/\(path)", body)
    }

    /// Connected to the app `talk`.
    func client(extra: [AMF0Property] = [], _ options: RawClient.Options = .init()) async throws -> RawClient {
        let client = try await RawClient.shaken(self.port, options)
        try await client.connect(app: "talk", extra: extra)
        return client
    }

    func listener(_ name: String, extra: [AMF0Property] = [], _ options: RawClient.Options = .init()) async throws -> RawClient {
        let client = try await self.client(extra: extra, options)
        try await client.play("r1/\(name)", on: client.createStream())
        return client
    }

    /// Publishes, without sending anything yet.
    func talker(_ name: String) async throws -> RawClient {
        let client = try await self.client()
        try await client.publish("r1/\(name)", on: client.createStream())
        return client
    }
}

/// Sends a signal as a phone would: in AAC-LC or Opus, each run when its samples have been recorded. The signal is what the sample at an
/// index is.
final class Microphone: Sendable {
    struct Sent: Sendable {
        /// Of the signal: where the run begins.
        let position: Int64
        let at: ContinuousClock.Instant
        /// After it was due.
        let lateMs: Double
    }

    let sent = LockedList<Sent>()
    private let client: RawClient
    private let streamID: UInt32
    private let codec: AudioEncoder.Codec

    init(_ client: RawClient, on streamID: UInt32 = 1, codec: AudioEncoder.Codec = .aac) {
        self.client = client
        self.streamID = streamID
        self.codec = codec
    }

    /// `jitterMs`: each run is sent up to so much later than it could be. `isPaced`: not all at once. `losing`: runs that are not sent.
    func speak(
        seconds: Double, jitterMs: Double = 0, seed: UInt64 = 1, isPaced: Bool = true, losing: @Sendable (Int64) -> Bool = { _ in false },
        _ signal: @Sendable (Int) -> Float
    ) async throws {
        let encoder = try AudioEncoder(codec: self.codec, sampleRate: 48_000, channels: 1, bitRate: 64_000)
        self.client.send(.audio, Array(encoder.sequenceMessage.readableBytesView), on: self.streamID)
        var random = seed
        let start = ContinuousClock.now
        var last = start
        for block in 0..<Int(seconds * 48_000 / 1_024) {
            let samples = (0..<1_024).map { signal(block * 1_024 + $0) }
            for run in try encoder.encode(PCM(sampleRate: 48_000, planes: [samples])) {
                random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                let delay = jitterMs * Double(random >> 40) / Double(1 << 24)
                let recorded = Double((block + 1) * 1_024) / 48_000
                let due = max(last, start + .seconds(recorded + delay / 1_000))
                last = due
                if losing(run.position / 1_024) { continue }
                if isPaced { try await Task.sleep(until: due, tolerance: .zero, clock: .continuous) }
                let timestamp = UInt32(max(0, run.position) * 1_000 / 48_000)
                let now = ContinuousClock.now
                self.sent.append(Sent(position: run.position, at: now, lateMs: (now - due) / .milliseconds(1)))
                self.client.send(
                    .audio, Array(encoder.message(run).readableBytesView), timestamp: timestamp, on: self.streamID)
            }
        }
    }
}

final class LockedList<Element: Sendable>: @unchecked Sendable {
    private let lock = NSLock()
    private var elements: [Element] = []
    var all: [Element] { self.lock.withLock { self.elements } }
    func append(_ element: Element) { self.lock.withLock { self.elements.append(element) } }
}

/// What a listener got, decoded.
struct Heard: Sendable {
    /// 48 kHz, mono.
    var samples: [Float] = []
    /// For each message: its timestamp in ms, when it came, and how many samples had been heard before it.
    var messages: [(timestamp: UInt32, at: ContinuousClock.Instant, start: Int)] = []
    var codec: String?

    /// `newest`: only so many messages, with the first ones of them as the decoder's run-up.
    init(_ client: RawClient, on streamID: UInt32 = 1, newest: Int? = nil) throws {
        var decoder: AudioDecoder?
        let resampler = Resampler(channels: 1)
        let all = client.media(on: streamID).filter { $0.message.type == .audio }
        let chosen = newest.map { all.prefix(1) + all.dropFirst().suffix($0) } ?? all[...]
        for received in chosen {
            let frame = try Frame(kind: .audio, timestamp: Int64(received.message.timestamp), payload: received.message.payload)
            if Track.describes(frame) {
                let track = try Track(frame)
                self.codec = track.codecName
                if decoder?.track != track { decoder = try AudioDecoder(track) }
            }
            guard let sample = Sample(frame), let decoder else { continue }
            self.messages.append((received.message.timestamp, received.at, self.samples.count))
            for run in try decoder.decode(sample.payload) { self.samples += try resampler.convert(run).planes[0] }
        }
    }

    /// From message to message, in ms.
    var steps: [Int] { zip(self.messages.dropFirst(), self.messages).map { Int($0.timestamp) - Int($1.timestamp) } }

    /// The last so many seconds.
    func last(_ seconds: Double) -> [Float] { Array(self.samples.suffix(Int(seconds * 48_000))) }

    /// As ``Tone/levels(_:_:)``.
    func levels(of frequency: Double) -> [Double] { Tone.levels(self.samples, frequency) }
}

enum Tone {
    /// A sine of this many Hz, half of full scale or as given.
    static func sine(_ frequency: Double, _ amplitude: Float = 0.25) -> @Sendable (Int) -> Float {
        { amplitude * Float(sin(2 * Double.pi * frequency * Double($0) / 48_000)) }
    }

    /// The tone's level in each tenth of a second, in dBFS, in rising order. A buffer that finds its depth bends a tone by up to a
    /// hundredth: it counts as the same.
    static func levels(_ samples: [Float], _ frequency: Double) -> [Double] {
        stride(from: 0, through: samples.count - 4_800, by: 4_800).map { start in
            let window = Array(samples[start..<(start + 4_800)])
            return [0.99, 1, 1.01].map { Signal.level(window, frequency: frequency * $0) }.max() ?? -200
        }.sorted()
    }
}
