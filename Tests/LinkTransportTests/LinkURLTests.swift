import Testing

@testable import LinkTransport

@Suite struct LinkURLTests {
    struct Good: Sendable {
        let text: String
        let app: String
        let stream: String
        let origin: String
        let redacted: String
    }

    static let good = [
        Good(
            text: "rtmp://example.com/live/cam1", app: "live", stream: "cam1", origin: "rtmp://example.com",
            redacted: "rtmp://example.com/live/c***"),
        Good(
            text: "RTMPS://Live.Example.com:8443/app/sk_live_0123456789?key=hush&b=2", app: "app",
            stream: "sk_live_0123456789?key=hush&b=2",
            origin: "rtmps://live.example.com:8443", redacted: "rtmps://live.example.com:8443/app/sk_l***"),
        // Split as by ffmpeg and librtmp.
        Good(
            text: "rtmp://h/talk/room1/alice?token=x/y", app: "talk/room1", stream: "alice?token=x/y", origin: "rtmp://h",
            redacted: "rtmp://h/talk/room1/a***"),
        Good(
            text: "rtmp://127.0.0.1:1/a/b/c/d", app: "a/b", stream: "c/d", origin: "rtmp://127.0.0.1:1",
            redacted: "rtmp://127.0.0.1:1/a/b/c***"),
        Good(text: "rtmps://[::1]/a/b", app: "a", stream: "b", origin: "rtmps://[::1]", redacted: "rtmps://[::1]/a/***"),
        Good(
            text: "rtmps://[2001:DB8:0::1]:443/a/b", app: "a", stream: "b", origin: "rtmps://[2001:db8::1]",
            redacted: "rtmps://[2001:db8::1]/a/***"),
    ]

    @Test(arguments: good) func parts(_ good: Good) throws {
        let url = try LinkURL(parsing: good.text)
        #expect(url.app == good.app)
        #expect(url.stream == good.stream)
        #expect(url.origin == good.origin)
        #expect(url.redacted == good.redacted)
    }

    @Test func usualPorts() throws {
        #expect(try LinkURL(parsing: "rtmp://h/a/b").port == 1935)
        #expect(try LinkURL(parsing: "rtmps://h/a/b").port == 443)
        #expect(try LinkURL(parsing: "rtmp://h:65535/a/b").port == 65_535)
    }

    static let bad = [
        "", "rtmp", "rtmp:/h/a/b", "http://h/a/b", "rtmpe://h/a/b", "rtmpt://h/a/b", "rtmp:///a/b", "rtmp://h", "rtmp://h/", "rtmp://h/a",
        "rtmp://h/a/", "rtmp://h//b", "rtmp://h/a//b", "rtmp://h?a/b", "rtmp://h/a?x=/b", "rtmp://h:/a/b", "rtmp://h:0/a/b",
        "rtmp://h:65536/a/b",
        "rtmp://h:1935x/a/b", "rtmp://h:+19/a/b", "rtmp://user:password@h/a/b", "rtmp://@h/a/b", "rtmp://-h/a/b", "rtmp://h..x/a/b",
        "rtmp://127.1/a/b",
        "rtmp://0x7f.1/a/b", "rtmp://2130706433/a/b", "rtmp://1.2.3.4.5/a/b", "rtmp://[::1/a/b", "rtmp://[::1%lo]/a/b",
        "rtmp://[1.2.3.4]/a/b",
        "rtmp://::1/a/b", "rtmp://h/a/b#c", "rtmp://h/a/b c", "rtmp://h/a/b swfUrl=http://x/ swfVfy=1", "rtmp://h/a/b\u{0}",
        "rtmp://h/a/b\n",
        "rtmp://h/a/b\u{7F}", "rtmp://h/a/b\\20app=x", "rtmp://h/ä/b", "rtmp://h/a/b\u{202E}",
        "rtmp://h/" + String(repeating: "a", count: 257) + "/b",
        "rtmp://h/a/" + String(repeating: "b", count: 2_048),
    ]

    @Test(arguments: bad) func refused(_ text: String) {
        do {
            _ = try LinkURL(parsing: text)
            Issue.record("\(text.prefix(80)) was accepted")
        } catch {
            guard case .badURL = error else {
                Issue.record("\(error)")
                return
            }
            #expect(error.isPermanent)
            // The message contains nothing of the URL.
            #expect(!error.description.contains("password"))
        }
    }

    @Test func longestNames() throws {
        let url = "rtmp://h/" + String(repeating: "a", count: 256) + "/"
        let text = url + String(repeating: "b", count: LinkURL.maxBytes - url.utf8.count)
        #expect(try LinkURL(parsing: text).stream.utf8.count == LinkURL.maxBytes - url.utf8.count)
        #expect(throws: LinkError.self) { try LinkURL(parsing: text + "b") }
    }

    @Test func serversWordsAreScrubbed() throws {
        let url = try LinkURL(parsing: "rtmp://h/live/secretkey?token=abcdef&x=1")
        #expect(url.scrub("stream secretkey?token=abcdef is taken") == "stream ***?token=*** is taken")
        #expect(url.scrub("secretkey?token=abcdef&x=1") == "***")
        #expect(url.scrub("no abcdef\r\nfor secretkey") == "no *** for ***")
        #expect(url.scrub(String(repeating: "x", count: 5_000)).count == 200)
    }
}
