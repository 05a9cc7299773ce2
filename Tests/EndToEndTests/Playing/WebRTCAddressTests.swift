import Foundation
import Rooms
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import ServerConfiguration

/// WebRTC on a machine of several addresses: a client hears only answers from where it asked.
@Suite struct WebRTCAddressTests {
    /// The port is on all addresses, and the kernel alone would answer from 127.0.0.1.
    @Test(arguments: zip(["127.0.0.2", "127.0.0.3", "::1"], ["0.0.0.0", "::", "::"])) func answersComeFromWhereOneAsked(
        _ address: String, _ webrtc: String
    ) async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 3)
        try await TestServer.run({
            $0.webrtc.listen = HostPort(host: webrtc, port: 0)
            $0.webrtc.addresses = [address]
        }) { server in
            let push = try ClientProcess(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/cam"))
            defer { push.send(SIGKILL) }
            try await server.waitFor("cam", .live)
            let viewer = try await WHEPViewer.open("\(server.http)/whep/live/cam")
            try await eventually("pictures and sound, or an end") {
                viewer.problem != nil || viewer.units.count > 20 && viewer.sounds > 20
            }
            #expect(viewer.problem == nil)
            viewer.close()
        }
    }
}
