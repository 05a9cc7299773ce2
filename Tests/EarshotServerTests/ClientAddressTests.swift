import Foundation
import Listening
import Logging
import NIOCore
import Support
import Testing

@testable import EarshotServer
@testable import ServerConfiguration

/// The client's address of an HTTP request behind proxies.
@Suite struct ClientAddressTests {
    static let table: [(peer: String, forwarded: [String], client: String?)] = [
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["203.0.113.9"], "203.0.113.9"),
        // Entries further left were written by the client.
        ("10.0.0.1", ["127.0.0.1, 203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", ["127.0.0.1", " 203.0.113.9\t"], "203.0.113.9"),
        // Proxy behind proxy.
        ("10.0.0.1", ["198.51.100.1,203.0.113.9, 10.0.0.2"], "203.0.113.9"),
        ("10.0.0.1", ["10.0.0.3"], "10.0.0.3"),
        ("10.0.0.1", ["2001:db8::7"], "2001:db8::7"), ("10.0.0.1", ["[2001:db8::7]:81"], "2001:db8::7"),
        ("10.0.0.1", ["203.0.113.9:4711"], "203.0.113.9"),
        ("::ffff:10.0.0.1", ["203.0.113.9"], "203.0.113.9"),
        // A trusted proxy with a senseless header.
        ("10.0.0.1", ["unknown"], nil), ("10.0.0.1", ["203.0.113.9, "], nil), ("10.0.0.1", [""], nil), ("10.0.0.1", ["1.2.3"], nil),
        ("10.0.0.1", [String(repeating: "9", count: 9_000)], nil),
        // A header from an untrusted peer.
        ("203.0.113.5", ["127.0.0.1"], "203.0.113.5"), ("127.0.0.1", [], "127.0.0.1"),
        // An untrusted proxy on this machine must not make the world local.
        ("127.0.0.1", ["203.0.113.9"], nil), ("127.0.0.1", ["127.0.0.1"], nil), ("::1", ["203.0.113.9"], nil),
    ]

    @Test(arguments: Self.table) func forwarded(_ peer: String, _ forwarded: [String], _ client: String?) throws {
        let addresses = ClientAddresses(
            trusted: [try CIDR(parsing: "10.0.0.0/8")], log: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let found = addresses.client(peer: try SocketAddress(ipAddress: peer, port: 5_000), forwarded: forwarded)
        #expect(found?.ipAddress == client)
    }

    /// nginx in front of the server, as in docs/operations.md: its header sets players' addresses only if it is trusted.
    @Test(arguments: [true, false]) func behindNginx(_ isTrusted: Bool) async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 20)
        try await TestServer.run({ if isTrusted { $0.access.trustedProxies = CIDR.loopback } }) { server in
            try await Proxy.run(to: server.addresses.http.port) { proxy in
                try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/cam1")) { _ in
                    try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
                    guard isTrusted else {
                        for path in ["live/cam1.flv", "live/cam1.m3u8", "api/v1/streams"] {
                            let answer = try await HTTPAnswer.get("\(proxy)/\(path)", token: server.token)
                            #expect(answer.status == 403, "\(path): \(answer.text)")
                        }
                        #expect(await server.lines.comes("access.trustedProxies", "proxy=127.0.0.1"))
                        return
                    }
                    for format in ["flv", "m3u8", "mp4"] {
                        let played = ["ffmpeg", "-v", "error", "-i", "\(proxy)/live/cam1.\(format)", "-t", "1", "-f", "null", "-"]
                        let outcome = try await ClientProcess.run(played)
                        #expect(outcome.status == 0, "\(format): \(outcome.errors)")
                    }
                    #expect(try await HTTPAnswer.get("\(proxy)/api/v1/streams", token: server.token).status == 200)
                    // The header that nginx adds for a remote client: the rules for strangers apply.
                    let stranger = try await HTTPAnswer.call(
                        "GET", "\(server.http)/live/cam1.flv", headers: ["X-Forwarded-For": "127.0.0.1, 203.0.113.9"])
                    #expect(stranger.status == 403 && stranger.text.contains("203.0.113.9"), "\(stranger.text)")
                }
            }
        }
    }
}

/// nginx as an HTTP proxy, on a port of its own.
private enum Proxy {
    static func run(to port: Int, _ body: (String) async throws -> Void) async throws {
        try await Fixture.withDirectory { directory in
            let own = try await FreePort.take()
            let file = directory.appendingPathComponent("nginx.conf")
            let settings = """
                daemon off;
                master_process off;
                pid \(directory.path)/nginx.pid;
                error_log \(directory.path)/error.log;
                events { worker_connections 256; }
                http {
                    access_log off;
                    client_body_temp_path \(directory.path);
                    proxy_temp_path \(directory.path);
                    fastcgi_temp_path \(directory.path);
                    uwsgi_temp_path \(directory.path);
                    scgi_temp_path \(directory.path);
                    server {
                        listen 127.0.0.1:\(own);
                        location / {
                            proxy_pass http://127.0.0.1:\(port);
                            proxy_http_version 1.1;
                            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
                        }
                    }
                }
                """
            try Data(settings.utf8).write(to: file)
            let process = try ClientProcess(["nginx", "-p", directory.path, "-c", file.path, "-e", "\(directory.path)/early.log"])
            defer { process.send(SIGKILL) }
            try await eventually("nginx") {
                guard process.isRunning else { throw TimedOut(description: "nginx ended: \(process.errorsSoFar)") }
                do { return try await HTTPAnswer.get("http://127.0.0.1:\(own)/healthz").status == 200 } catch is URLError { return false }
            }
            try await body("http://127.0.0.1:\(own)")
        }
    }
}
