import Foundation
import NIOCore
import TestSupport
import Testing

@testable import LinkTransport

/// RTMPS: which servers are trusted, and that TLS passes the bytes unchanged.
@Suite struct TLSTests {
    private static func options(_ authority: String?) -> LinkOptions {
        var options = LinkOptions.forTests
        options.caFile = authority
        options.reconnect.maxAttempts = 1
        // As if "localhost" and other names were in the DNS.
        options.lookup = { _ in .success([[127, 0, 0, 1]]) }
        return options
    }

    /// The error with which the link failed.
    private static func failure(_ url: String, _ options: LinkOptions) async throws -> LinkError {
        try await pulling(url, options) { task, _ in
            try await eventually("failure") { if case .failed = task.state { true } else { false } }
            return try task.status.lastError.orThrow()
        }
    }

    @Test func rightCertificateBothWays() async throws {
        let source = try await Fixture.flv(video: Fixture.withBFrames, audio: Fixture.aac, seconds: 3)
        let tags = try FLVFile.read(source)
        let pushed = PushTests.pushed(tags)
        let expected = try await PushTests.packets(of: pushed)
        try await Fixture.withDirectory { directory in
            let certificates = try await Certificates.make(in: directory)
            let pair = try await certificates.pair("right", names: "DNS:media.example.test")
            try await Nginx.run { nginx in
                try await TLSFront.run(to: nginx.port, pair) { front in
                    let url = "rtmps://media.example.test:\(front.port)/live/cam1"
                    let options = Self.options(certificates.authority)
                    try await pulling(url, options) { pull, pulled in
                        try await eventually("the answer to play") { pull.status.bytesIn > 300 }
                        try await pushing(url, options) { push, _ in
                            try await eventually("consent") { push.state == .running }
                            #expect(push.status.tls?.hasPrefix("TLSv1.3 TLS_") == true)
                            try await offer(tags, to: push, speed: 2)
                            try await eventually("the last frame sent") { push.status.framesOut == UInt64(pushed.count) }
                        }
                        try await eventually("the last frame") { pulled.codedCount >= expected.count }
                        let got = try await PullTests.packets(pulled)
                        #expect(got.difference(from: expected) == nil)
                    }
                    #expect(front.names == ["media.example.test", "media.example.test"])
                }
            }
        }
    }

    struct Refusal: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let names: String
        var days = 30
        var trusted = true
        var host = "media.example.test"
        var old = false
        let words: String
    }

    static let refusals = [
        Refusal(testDescription: "wrong name", names: "DNS:other.example.test", words: "for another name"),
        Refusal(testDescription: "name of the parent", names: "DNS:example.test", words: "for another name"),
        Refusal(
            testDescription: "wrong address", names: "DNS:media.example.test,IP:127.0.0.2", host: "127.0.0.1", words: "for another name"),
        Refusal(testDescription: "address as a name", names: "DNS:127.0.0.1", host: "127.0.0.1", words: "for another name"),
        Refusal(testDescription: "expired", names: "DNS:media.example.test", days: -1, words: "expired"),
        Refusal(testDescription: "unknown authority", names: "DNS:media.example.test", trusted: false, words: "does not trust"),
        Refusal(testDescription: "TLS 1.1", names: "DNS:media.example.test", old: true, words: "is TLS spoken on that port?"),
    ]

    @Test(arguments: refusals) func refused(_ refusal: Refusal) async throws {
        try await Fixture.withDirectory { directory in
            let certificates = try await Certificates.make(in: directory)
            let pair = try await certificates.pair("server", names: refusal.names, days: refusal.days)
            try await ScriptedRTMP.run { server in
                try await TLSFront.run(to: server.port, pair, old: refusal.old) { front in
                    let url = "rtmps://\(refusal.host):\(front.port)/live/cam1"
                    let error = try await Self.failure(url, Self.options(refusal.trusted ? certificates.authority : nil))
                    guard case .tls(_, let why) = error else {
                        Issue.record("\(error)")
                        return
                    }
                    #expect(why.contains(refusal.words), "\(why)")
                    // No RTMP was sent.
                    #expect(server.messages.all.isEmpty)
                }
            }
        }
    }

    @Test func addressInTheCertificate() async throws {
        try await Fixture.withDirectory { directory in
            let certificates = try await Certificates.make(in: directory)
            let pair = try await certificates.pair("server", names: "IP:127.0.0.1,IP:::1")
            try await ScriptedRTMP.run { server in
                for host in ["127.0.0.1", "::1"] {
                    try await TLSFront.run(to: server.port, pair, host: host) { front in
                        let text = host == "::1" ? "[::1]" : host
                        try await pushing("rtmps://\(text):\(front.port)/live/cam1", Self.options(certificates.authority)) { task, _ in
                            try await eventually("consent") { task.state == .running }
                            #expect(task.status.remoteAddress == "\(text):\(front.port)")
                        }
                        #expect(front.names == ["None"] || front.names.isEmpty)
                    }
                }
            }
        }
    }

    @Test func plainServerOnTheTLSPort() async throws {
        try await ScriptedRTMP.run { server in
            let error = try await Self.failure("rtmps://127.0.0.1:\(server.port)/live/cam1", Self.options(nil))
            guard case .tls(_, let why) = error else {
                Issue.record("\(error)")
                return
            }
            #expect(why.contains("is TLS spoken on that port?"), "\(why)")
        }
    }

    @Test func silentServerOnTheTLSPort() async throws {
        var script = ScriptedRTMP.Script()
        script.isDeaf = true
        try await ScriptedRTMP.run(script) { server in
            var error: LinkError?
            // The limit includes the connection itself, for which this machine may be too slow.
            for ms in [300, 5_000, 60_000] {
                var options = Self.options(nil)
                options.connectTimeoutMs = ms
                error = try await Self.failure("rtmps://127.0.0.1:\(server.port)/live/cam1", options)
                guard case .connect = error else { break }
            }
            #expect(error == .tls(origin: "rtmps://127.0.0.1:\(server.port)", why: "its handshake took too long"))
        }
    }

    /// The TLS server is killed in mid-stream.
    @Test func lostInTheMiddle() async throws {
        try await Fixture.withDirectory { directory in
            let certificates = try await Certificates.make(in: directory)
            let pair = try await certificates.pair("server", names: "IP:127.0.0.1")
            try await ScriptedRTMP.run { server in
                var options = Self.options(certificates.authority)
                options.reconnect.maxAttempts = nil
                let used = options
                try await TLSFront.run(to: server.port, pair) { front in
                    try await pushing("rtmps://127.0.0.1:\(front.port)/live/cam1", used) { task, record in
                        try await eventually("consent") { task.state == .running }
                        front.process.send(SIGKILL)
                        try await eventually("the end") { record.words.contains("running waiting") }
                        switch try task.status.lastError.orThrow() {
                        case .closed, .tls, .connect: break
                        case let error: Issue.record("\(error)")
                        }
                    }
                }
            }
        }
    }
}
