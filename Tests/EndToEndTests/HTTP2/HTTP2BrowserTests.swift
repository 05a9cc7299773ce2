import Foundation
import ServerTestSupport
import TestSupport
import Testing

@testable import EarshotServer
@testable import ServerConfiguration

/// A browser over HTTPS: its requests share an HTTP/2 connection, its WebSockets have their own.
@Suite struct HTTP2BrowserTests {
    private static let page = """
        <!doctype html><video id=v muted autoplay playsinline width=320></video><script>
        const q = new URLSearchParams(location.search), base = q.get('base'), v = document.getElementById('v');
        const seen = {type: '', socketBytes: 0, playlists: 0}; let begin = null;
        const tell = (more) => fetch(q.get('report'), {method: 'POST', mode: 'no-cors', body: JSON.stringify(Object.assign(seen, more))});
        const source = new MediaSource();
        v.onplaying = () => { if (begin === null) begin = v.currentTime; };
        v.src = URL.createObjectURL(source);
        const append = (buffer, bytes) => new Promise((done, failed) => {
          buffer.onupdateend = done; buffer.onerror = failed; buffer.appendBuffer(bytes);
        });
        const play = async () => {
          const answer = await fetch(base + '/live/cam1.mp4?' + q.get('sign'));
          seen.type = answer.headers.get('content-type');
          const buffer = source.addSourceBuffer(seen.type), reader = answer.body.getReader();
          for (;;) {
            const {value, done} = await reader.read();
            if (done) break;
            await append(buffer, value);
            if (v.buffered.length && v.currentTime < v.buffered.start(0)) v.currentTime = v.buffered.start(0);
          }
        };
        const follow = async () => {
          const first = await (await fetch(base + '/live/cam1.m3u8?' + q.get('sign'))).text();
          // The browser would send requests for one address one after the other.
          const media = first.split('\\n').find((line) => line.includes('media.m3u8'));
          for (;;) {
            const answers = await Promise.all([0, 1, 2, 3, 4, 5, 6, 7].map((n) => fetch(base + '/live/' + media + '&n=' + n)));
            for (const answer of answers) { await answer.text(); if (answer.ok) seen.playlists++; }
            await new Promise((done) => setTimeout(done, 300));
          }
        };
        const fail = (error) => tell({error: String(error)});
        source.onsourceopen = () => { play().catch(fail); follow().catch(fail); };
        const socket = new WebSocket(base.replace('https', 'wss') + '/live/cam1.flv?' + q.get('sign')); socket.binaryType = 'arraybuffer';
        socket.onmessage = (message) => { seen.socketBytes += message.data.byteLength; };
        // When all has come; after that time what there is.
        const end = Date.now() + 45000;
        const look = setInterval(() => {
          const now = {frames: v.getVideoPlaybackQuality().totalVideoFrames, width: v.videoWidth,
            advancedMs: begin === null ? 0 : Math.round((v.currentTime - begin) * 1000), error: v.error ? v.error.message : ''};
          const all = now.frames > 50 && now.advancedMs > 2000 && seen.playlists >= 16 && seen.socketBytes > 20000;
          if (all || Date.now() > end) { clearInterval(look); tell(now); }
        }, 200);
        </script>
        """

    /// An endless body in MediaSource, eight parallel playlists, and FLV over a WebSocket at once.
    @Test func theBrowserChooses() async throws {
        let source = try await Fixture.flv(video: Fixture.withBFrames, audio: Fixture.aac, seconds: 20)
        try await Fixture.withDirectory { directory in
            let (page, log) = (directory.appendingPathComponent("play.html"), directory.appendingPathComponent("net.json"))
            try Self.page.write(to: page, atomically: true, encoding: .utf8)
            let reports = try await WebhookReceiver.start()
            try await TestServer.runSecure({ $0.credentials.key = "a key for tests" }) { server in
                // A page from a file has no origin to allow, so its requests are signed.
                let signed = TestCredential.signed("cam1", key: "a key for tests").replacing("&", with: "%26")
                try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/cam1")) { _ in
                    try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
                    let browser = try ClientProcess([
                        "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--mute-audio",
                        "--user-data-dir=\(directory.appendingPathComponent("profile").path)", "--ignore-certificate-errors",
                        "--autoplay-policy=no-user-gesture-required", "--log-net-log=\(log.path)",
                        "file://\(page.path)?base=\(server.https)&sign=\(signed)&report=\(reports.url)",
                    ])
                    defer { browser.send(SIGKILL) }
                    try await eventually("the page's report") { !reports.deliveries.isEmpty }
                    let report = try reports.deliveries.first.orThrow().json
                    #expect(report["error"].string == "", "\(report)")
                    #expect(report["type"].string?.lowercased().hasPrefix("video/mp4; codecs=\"avc1.4d40") == true, "\(report)")
                    #expect(report["width"].int == 320 && report["frames"].int ?? 0 > 50, "\(report)")
                    #expect(report["advancedMs"].int ?? 0 > 2_000, "\(report)")
                    #expect(report["playlists"].int ?? 0 >= 16 && report["socketBytes"].int ?? 0 > 20_000, "\(report)")
                    // The browser's own log of its connections shows both protocols.
                    try await eventually("the browser's log") {
                        let text = String(decoding: try Data(contentsOf: log), as: UTF8.self)
                        return text.contains("\"next_proto\":\"h2\"") && text.contains("\"next_proto\":\"http/1.1\"")
                    }
                }
            }
            await reports.stop()
        }
    }
}
