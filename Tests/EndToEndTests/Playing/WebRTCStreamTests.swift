import EarshotServer
import Foundation
import NIOCore
import NIOPosix
import Packaging
import Playback
import Rooms
import ServerTestSupport
import Streaming
import Support
import TestSupport
import Testing
import WebRTC

@testable import ServerConfiguration

/// WebRTC by TCP, for networks that let no UDP through.
@Suite struct WebRTCStreamTests {
    /// Where TCP comes in: at HTTP's port, which knows it by its first byte, or at a port of WebRTC's own.
    enum Port: CaseIterable { case http, own }

    @Test(arguments: Port.allCases) func plays(_ port: Port) async throws {
        try await Self.run(port) { server in
            let viewer = try await WHEPViewer.open("\(server.http)/whep/live/cam", byTCP: true)
            try await eventually("pictures and sound, or an end") {
                viewer.problem != nil || viewer.units.count > 40 && viewer.sounds > 40
            }
            #expect(viewer.problem == nil)
            let streams = server.server.parts.webrtc.port
            #expect(streams.connections == 1)
            // HTTP's port is HTTP's as before.
            #expect(try await HTTPAnswer.call("GET", "\(server.http)/healthz").status == 200)
            #expect(try await HTTPAnswer.call("DELETE", viewer.session).status == 200)
            try await eventually("its connection to be closed") { streams.connections == 0 }
            viewer.close()
        }
    }

    /// A viewer whose network stands still for a while: the server keeps little for it, and goes on with it at a keyframe.
    @Test func aSlowViewer() async throws {
        try await Self.run(.http) { server in
            let viewer = try await WHEPViewer.open("\(server.http)/whep/live/cam", byTCP: true)
            try await eventually("pictures") { viewer.units.count > 20 }
            viewer.hold(true)
            let packets = try server.server.parts.webrtc.packets.find("live/cam").orThrow()
            try await eventually("the viewer to be behind") {
                try await Self.behindMs(server) > 2_000
            }
            #expect(server.server.parts.memory.ledger.used < 64 << 20)
            viewer.hold(false)
            let before = viewer.units.count
            try await eventually("pictures again") { viewer.units.count > before + 100 }
            try await eventually("the viewer to be live") {
                try await Self.behindMs(server) < 1_000
            }
            #expect(viewer.problem == nil && packets.problem == nil)
            viewer.close()
        }
    }

    /// A viewer that ends and never reads what it was sent last: its connection is closed all the same.
    @Test func anEndThatNobodyReads() async throws {
        try await Self.run(.own) { server in
            let viewer = try await WHEPViewer.open("\(server.http)/whep/live/cam", byTCP: true)
            try await eventually("pictures") { viewer.units.count > 20 }
            viewer.hold(true)
            try await eventually("the viewer to be behind") { try await Self.behindMs(server) > 1_000 }
            #expect(try await HTTPAnswer.call("DELETE", viewer.session).status == 200)
            try await eventually("its connection to be closed") { server.server.parts.webrtc.port.connections == 0 }
            viewer.close()
        }
    }

    /// Connections that are no viewer's are closed, and nobody else is disturbed.
    @Test func strangers() async throws {
        try await Self.run(.http) { server in
            let viewer = try await WHEPViewer.open("\(server.http)/whep/live/cam", byTCP: true)
            try await eventually("pictures") { viewer.units.count > 20 }
            let check = STUNMessage.check("nobody:watch", transaction: [UInt8](repeating: 3, count: 12)).bytes(password: [1, 2, 3])
            let wrongs: [[UInt8]] = [
                // A frame that is longer than any; checks of nobody, one after the other; noise in frames.
                [8, 255, 1, 2, 3], (0..<20).flatMap { _ in [0, UInt8(check.count)] + check }, (0..<40).flatMap { [0, 2, 22, UInt8($0)] },
            ]
            for wrong in wrongs {
                let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                    .connect(host: "127.0.0.1", port: server.server.parts.connections.addresses.orThrow().http.port).get()
                try await channel.writeAndFlush(ByteBuffer(bytes: wrong))
                try await channel.closeFuture.get()
            }
            let before = viewer.units.count
            try await eventually("the viewer's pictures") { viewer.problem != nil || viewer.units.count > before + 20 }
            #expect(viewer.problem == nil)
            viewer.close()
        }
    }

    @Test func offByASetting() async throws {
        try await Self.run(.http, change: { $0.webrtc.acceptsTCP = false }) { server in
            let offer = try Data(WatchingClient().offer.utf8)
            let answer = try await HTTPAnswer.call(
                "POST", "\(server.http)/whep/live/cam", body: offer, headers: ["Content-Type": "application/sdp"])
            #expect(answer.status == 201 && !answer.text.contains(" tcp ") && answer.text.contains(" udp "), "\(answer.text)")
        }
    }

    private static func behindMs(_ server: TestServer) async throws -> Int {
        try await server.api("sessions?role=player")["list"].list.first?["playing"].list.first?["behindMs"].int ?? 0
    }

    private static func run(
        _ port: Port, change: @escaping @Sendable (inout ServerConfig) -> Void = { _ in },
        _ body: @Sendable (TestServer) async throws -> Void
    ) async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 3)
        try await TestServer.run({
            if port == .own { $0.webrtc.listen = HostPort(host: "127.0.0.1", port: 0) }
            change(&$0)
        }) { server in
            let push = try ClientProcess(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/cam"))
            defer { push.send(SIGKILL) }
            try await server.waitFor("cam", .live)
            try await body(server)
        }
    }
}
