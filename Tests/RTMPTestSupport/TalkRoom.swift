import EarshotServer
import FFmpeg
import Foundation
import Media
import NIOCore
package import RTMP
package import ServerConfiguration
package import ServerTestSupport
import SignalCheck
package import Testing

@testable import Support

/// A server with a live room, for tests of its talk channel.
package struct TalkRoom<Server: LiveServer>: Sendable {
    package let server: Server
    package let camera: RawClient
    package let name = "r1"

    package var port: Server.Door { self.server.port }

    package init(server: Server, camera: RawClient) {
        self.server = server
        self.camera = camera
    }

    /// Brings a camera into the room while the body runs. `camera` returns the name to push to, with its credential.
    package static func live(
        on server: Server, camera: @Sendable (Server) async throws -> String, _ body: @Sendable (TalkRoom) async throws -> Void
    ) async throws {
        let camera = try await RawClient.publishing(server.port, try await camera(server))
        camera.send(.video, SyntheticTag.videoHeader)
        camera.send(.video, SyntheticTag.video(1, isKeyframe: true, bytes: 2_000))
        let room = TalkRoom(server: server, camera: camera)
        try await server.wait("rooms/r1") { $0["state"].string == "live" }
        try await body(room)
        await camera.close()
    }

    /// A busy machine may delay viewers for seconds, in reading or writing. They are not cut and miss nothing.
    package static func patient(_ config: inout ServerConfig) {
        config.relay.maxBehindMs = 600_000
        config.talk.maxQueueMs = 10_000
    }

    package func talk() async throws -> JSON { try await self.server.api("rooms/r1/talk") }

    package func member(_ id: String) async throws -> JSON {
        try await self.talk()["members"].list.first { $0["userId"].string == id } ?? JSON(nil)
    }

    /// Kind, participant and reason of each floor event, in order.
    package func floorEvents() async throws -> [String] {
        let events = try await self.server.api("rooms/r1/events?limit=1000")["list"].list
        return events.filter { $0["kind"].string?.hasPrefix("talk.floor.") == true }.map {
            "\($0["kind"].string?.dropFirst("talk.floor.".count) ?? "") \($0["data"]["userId"].string ?? "?") \($0["data"]["reason"].string ?? "?")"
        }
    }

    /// The number of server stalls of over a second. Listeners miss that time.
    package var stalls: Int { self.server.lines.all.count { $0.contains("The server stood still") } }

    /// Checks that a mix's timestamps are evenly spaced, except where the server stalled.
    package func expectEven(
        _ client: RawClient, on streamID: UInt32 = 1, _ steps: ClosedRange<Int> = 21...22, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let gaps = try Heard(client, on: streamID).steps.filter { !steps.contains($0) }
        #expect(gaps.count <= self.stalls, "\(gaps) ms; the server stood still \(self.stalls) times", sourceLocation: sourceLocation)
    }

    package func post(_ path: String, _ body: String) async throws -> HTTPAnswer {
        try await self.server.call("POST", "rooms/r1/talk/\(path)", body)
    }

    /// Connects to the app `talk`.
    package func client(extra: [AMF0Property] = [], _ options: RawClient.Options = .init()) async throws -> RawClient {
        let client = try await RawClient.shaken(self.port, options)
        try await client.connect(app: "talk", extra: extra)
        return client
    }

    package func listener(_ name: String, extra: [AMF0Property] = [], _ options: RawClient.Options = .init()) async throws -> RawClient {
        let client = try await self.client(extra: extra, options)
        try await client.play("r1/\(name)", on: client.createStream())
        return client
    }

    /// Publishes without sending anything yet.
    package func talker(_ name: String) async throws -> RawClient {
        let client = try await self.client()
        try await client.publish("r1/\(name)", on: client.createStream())
        return client
    }
}

/// The sound that a listener received, decoded.
package struct Heard: Sendable {
    /// 48 kHz, mono.
    package var samples: [Float] = []
    /// For each message: its timestamp in ms, its arrival, and the number of samples before it.
    package var messages: [(timestamp: UInt32, at: ContinuousClock.Instant, start: Int)] = []
    package var codec: String?

    /// `newest` limits decoding to the first message and that many of the last. The first of those are the decoder's run-up.
    package init(_ client: RawClient, on streamID: UInt32 = 1, newest: Int? = nil) throws {
        var (track, decoder): (Track?, AudioDecoder?)
        let resampler = Resampler(channels: 1)
        let all = client.media(on: streamID).filter { $0.message.type == .audio }
        let chosen = newest.map { all.prefix(1) + all.dropFirst().suffix($0) } ?? all[...]
        for received in chosen {
            let frame = try Frame(kind: .audio, timestamp: Int64(received.message.timestamp), payload: received.message.payload)
            if Track.describes(frame) {
                let announced = try Track(frame)
                self.codec = announced.codecName
                if track != announced { decoder = try AudioDecoder(announced) }
                track = announced
            }
            guard let sample = Sample(frame), let decoder else { continue }
            self.messages.append((received.message.timestamp, received.at, self.samples.count))
            for run in try decoder.decode(sample.payload) { self.samples += try resampler.convert(run).planes[0] }
        }
    }

    /// Whether a tone is heard in each tenth of a second, oldest first: at the level of ``Tone/sine(_:_:)`` less 8 dB.
    package func voiced(_ frequency: Double) -> [Bool] { Tone.windows(self.samples, frequency).map { $0 > -20 } }

    /// Milliseconds from message to message.
    package var steps: [Int] { zip(self.messages.dropFirst(), self.messages).map { Int($0.timestamp) - Int($1.timestamp) } }

    /// The last `seconds`.
    package func last(_ seconds: Double) -> [Float] { Array(self.samples.suffix(Int(seconds * 48_000))) }

    /// As ``Tone/levels(_:_:)``.
    package func levels(of frequency: Double) -> [Double] { Tone.levels(self.samples, frequency) }
}
