import Foundation
import Media
import Rooms
import ServerConfiguration
import ServerTestSupport
import TestSupport
import Testing

@testable import EarshotServer
@testable import Support

/// A browser's MediaSource plays fragmented MP4 as it arrives over a WebSocket.
@Suite struct BrowserTests {
    private static let page = """
        <!doctype html><video id=v muted autoplay playsinline width=320></video><script>
        const q = new URLSearchParams(location.search), v = document.getElementById('v'), queue = [], seen = {};
        const tell = (more) => fetch(q.get('report'), {method: 'POST', mode: 'no-cors', body: JSON.stringify(Object.assign(seen, more))});
        let buffer = null, begin = null, gap = 0, isOpening = false;
        seen.types = [];
        const tracks = (type) => type.split(';')[0] + type.split(',').length;
        const feed = () => {
          while (!isOpening && !(buffer && buffer.updating) && queue.length) {
            const item = queue.shift();
            if (typeof item === 'string') change(item); else { buffer.appendBuffer(item); return; }
          }
        };
        // Text says of what type the pieces behind it are. As many tracks as before: the buffer changes; otherwise it takes another source.
        const change = (type) => {
          if (!MediaSource.isTypeSupported(type)) { tell({error: 'not supported'}); return; }
          const last = seen.type; seen.type = type; seen.types.push(type); begin = null;
          if (buffer && tracks(last) === tracks(type)) { buffer.changeType(type); begin = v.currentTime; return; }
          const source = new MediaSource(); isOpening = true; buffer = null;
          source.onsourceopen = () => {
            source.onsourceopen = null;
            buffer = source.addSourceBuffer(type); isOpening = false;
            buffer.onerror = () => tell({error: 'the source buffer failed'});
            buffer.onupdateend = () => {
              if (v.buffered.length && v.currentTime < v.buffered.start(0)) v.currentTime = v.buffered.start(0);
              feed();
            };
            feed();
          };
          v.src = URL.createObjectURL(source);
        };
        v.onplaying = () => { if (begin === null) begin = v.currentTime; };
        const socket = new WebSocket(q.get('play')); socket.binaryType = 'arraybuffer';
        socket.onmessage = (message) => {
          queue.push(typeof message.data === 'string' ? JSON.parse(message.data).mimeType : message.data); feed();
        };
        socket.onerror = () => tell({error: 'the socket failed'});
        setInterval(() => {
          // Played for some seconds since the last change: then that is all there is to see.
          if (seen.types.length < Number(q.get('types')) || begin === null || v.currentTime - begin < 3) return;
          report();
        }, 200);
        setTimeout(() => report(), 25000);
        let isReported = false;
        const report = () => {
          if (isReported) return; isReported = true;
          for (let i = 1; i < v.buffered.length; i++) gap = Math.max(gap, v.buffered.start(i) - v.buffered.end(i - 1));
          const quality = v.getVideoPlaybackQuality();
          const ranges = []; for (let i = 0; i < v.buffered.length; i++) ranges.push([v.buffered.start(i), v.buffered.end(i)]);
          tell({ranges, at: v.currentTime, ready: v.readyState, frames: quality.totalVideoFrames, gapMs: Math.round(gap * 1000), width: v.videoWidth,
                advancedMs: begin === null ? 0 : Math.round((v.currentTime - begin) * 1000), error: v.error ? v.error.message : ''});
        };
        </script>
        """

    @Test func mediaSourcePlays() async throws {
        let source = try await Fixture.flv(video: Fixture.withBFrames, audio: Fixture.aac, seconds: 20)
        try await Fixture.withDirectory { directory in
            let page = directory.appendingPathComponent("play.html")
            try Self.page.write(to: page, atomically: true, encoding: .utf8)
            let reports = try await WebhookReceiver.start()
            try await TestServer.run(Self.keyed) { server in
                try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/cam1")) { _ in
                    try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
                    let play = "ws://127.0.0.1:\(server.addresses.http.port)/live/cam1.mp4\(Self.signed)"
                    let browser = try Self.browser(page, in: directory, "play=\(play)&types=1&report=\(reports.url)")
                    defer { browser.send(SIGKILL) }
                    try await eventually("the page's report") { !reports.deliveries.isEmpty }
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

    private static func keyed(_ config: inout ServerConfig) { config.credentials.key = "a key for tests" }

    /// A page from a file has no origin to allow: it plays by a signed URL. The "&" is escaped for the page's own query.
    private static let signed = "?\(TestCredential.signed("cam1", key: "a key for tests"))".replacing("&", with: "%26")

    private static func browser(_ page: URL, in directory: URL, _ query: String) throws -> ClientProcess {
        try ClientProcess([
            "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--mute-audio",
            "--user-data-dir=\(directory.appendingPathComponent("profile").path)", "--autoplay-policy=no-user-gesture-required",
            "file://\(page.path)?\(query)",
        ])
    }

    /// The change in the stream while the page plays.
    enum Change: String, CaseIterable { case codec, cameraComes, cameraGoes, microphoneComes }

    /// Codecs change, and tracks start and stop. The page gets a text message before the first changed piece, and plays on.
    @Test(arguments: Change.allCases) func mediaSourcePlaysOn(_ change: Change) async throws {
        let video = try FLVTag.media(of: try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 10))
        var (before, after) = (video, video)
        switch change {
        case .codec:
            let av1 = ["-c:v", "libaom-av1", "-cpu-used", "8", "-usage", "realtime", "-g", "25"]
            after = try FLVTag.media(
                of: try await Fixture.flv(video: av1, audio: Fixture.aac, seconds: 10, ffmpeg: try await NewFFmpeg.path()))
        case .cameraComes: before = video.filter { $0.kind == .audio || $0.isSequenceHeader }
        case .cameraGoes: after = video.filter { $0.kind == .audio }
        case .microphoneComes: before = video.filter { $0.kind == .video || $0.isSequenceHeader }
        }
        let (first, then) = (before, after)
        try await Fixture.withDirectory { directory in
            let page = directory.appendingPathComponent("play.html")
            try Self.page.write(to: page, atomically: true, encoding: .utf8)
            let reports = try await WebhookReceiver.start()
            try await TestServer.run(Self.keyed) { server in
                let client = try await TagClient.publish(to: server, "live/cam1")
                let publisher = PacedPublisher(client)
                let pushing = Task {
                    // Until the page plays, and two seconds more.
                    var from: UInt32 = 0
                    var ends: UInt32?
                    while from < ends ?? 60_000 {
                        let (round, begin) = (from / 10_000 * 10_000, from % 10_000)
                        let second = first.filter { $0.timestamp >= begin && $0.timestamp < begin + 1_000 }
                        try await publisher.send(second.map { $0.later(by: round) })
                        from += 1_000
                        if ends == nil, try await server.api("sessions?role=player")["total"].int == 1 { ends = from + 2_000 }
                    }
                    try await publisher.send(then.map { $0.later(by: from) })
                }
                defer { pushing.cancel() }
                try await server.wait("streams") { $0["total"].int == 1 }
                let play = "ws://127.0.0.1:\(server.addresses.http.port)/live/cam1.fmp4\(Self.signed)"
                let browser = try Self.browser(page, in: directory, "play=\(play)&types=2&report=\(reports.url)")
                defer { browser.send(SIGKILL) }
                try await eventually("the page's report", within: 60) { !reports.deliveries.isEmpty }
                let report = try reports.deliveries.first.orThrow().json
                #expect(report["error"].string == "", "\(report.value ?? 0)")
                let types = report["types"].list.compactMap(\.string)
                // Pictures without sound have silence in the same codec.
                #expect(types.count == 2 && (types[0] != types[1] || change == .microphoneComes), "\(types)")
                #expect(report["advancedMs"].int ?? 0 > 2_000, "since the change: \(report.value ?? 0)")
                if change != .cameraGoes { #expect(report["width"].int == 320 && report["frames"].int ?? 0 > 50, "\(report)") }
                await client.close()
            }
            await reports.stop()
        }
    }
}
