import EarshotServer
import Foundation
import Rooms
import Testing

/// A browser's MediaSource plays fragmented MP4 as it comes over a WebSocket.
@Suite struct BrowserTests {
    private static let page = """
        <!doctype html><video id=v muted autoplay playsinline width=320></video><script>
        const q = new URLSearchParams(location.search), v = document.getElementById('v'), queue = [], seen = {};
        const tell = (more) => fetch(q.get('report'), {method: 'POST', mode: 'no-cors', body: JSON.stringify(Object.assign(seen, more))});
        const source = new MediaSource(); let buffer, begin = null, gap = 0;
        const feed = () => { if (buffer && !buffer.updating && queue.length) buffer.appendBuffer(queue.shift()); };
        const start = () => {
          buffer = source.addSourceBuffer(seen.type);
          buffer.onerror = () => tell({error: 'the source buffer failed'});
          buffer.onupdateend = () => {
            if (v.buffered.length && v.currentTime < v.buffered.start(0)) v.currentTime = v.buffered.start(0);
            feed();
          };
          feed();
        };
        v.onplaying = () => { if (begin === null) begin = v.currentTime; };
        v.src = URL.createObjectURL(source);
        source.onsourceopen = () => {
          const socket = new WebSocket(q.get('play')); socket.binaryType = 'arraybuffer';
          socket.onmessage = (message) => {
            if (typeof message.data !== 'string') { queue.push(message.data); feed(); return; }
            seen.type = JSON.parse(message.data).mimeType;
            if (MediaSource.isTypeSupported(seen.type)) start(); else tell({error: 'not supported'});
          };
          socket.onerror = () => tell({error: 'the socket failed'});
        };
        setTimeout(() => {
          for (let i = 1; i < v.buffered.length; i++) gap = Math.max(gap, v.buffered.start(i) - v.buffered.end(i - 1));
          const quality = v.getVideoPlaybackQuality();
          tell({frames: quality.totalVideoFrames, gapMs: Math.round(gap * 1000), width: v.videoWidth,
                advancedMs: begin === null ? 0 : Math.round((v.currentTime - begin) * 1000), error: v.error ? v.error.message : ''});
        }, 9000);
        </script>
        """

    @Test func mediaSourcePlays() async throws {
        let source = try await Fixture.flv(video: Fixture.withBFrames, audio: Fixture.aac, seconds: 20)
        try await Fixture.withDirectory { directory in
            let page = directory.appendingPathComponent("play.html")
            try Self.page.write(to: page, atomically: true, encoding: .utf8)
            let reports = try await WebhookReceiver.start()
            try await TestServer.run { server in
                try await ClientProcess.during(FFmpeg.push(source, to: "\(server.rtmp)/live/cam1")) { _ in
                    try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
                    let play = "ws://127.0.0.1:\(server.addresses.http.port)/live/cam1.mp4"
                    let browser = try ClientProcess([
                        "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--mute-audio",
                        "--user-data-dir=\(directory.appendingPathComponent("profile").path)",
                        "--autoplay-policy=no-user-gesture-required", "file://\(page.path)?play=\(play)&report=\(reports.url)",
                    ])
                    defer { browser.send(SIGKILL) }
                    try await eventually("the page's report", within: 40) { !reports.deliveries.isEmpty }
                    let report = try reports.deliveries.first.orThrow().json
                    #expect(report["error"].string == "", "\(report)")
                    #expect(report["type"].string?.lowercased().hasPrefix("video/mp4; codecs=\"avc1.4d40") == true, "\(report)")
                    #expect(report["width"].int == 320)
                    #expect(report["frames"].int ?? 0 > 50, "\(report)")
                    #expect(report["advancedMs"].int ?? 0 > 2_000, "\(report)")
                    #expect(report["gapMs"].int ?? 1_000 <= 100, "\(report)")
                }
            }
            await reports.stop()
        }
    }
}
