import Foundation
import Listening
import Logging
import NIOCore
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import EarshotServer
@testable import ServerConfiguration

/// Players behind nginx.
@Suite struct NginxProxyTests {
    /// nginx in front of the server, as in docs/operations/network.md: its header sets players' addresses only if it is trusted.
    @Test(arguments: [true, false]) func behindNginx(_ isTrusted: Bool) async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 20)
        try await TestServer.run({
            guard isTrusted else { return }
            $0.access.trustedProxies = CIDR.loopback
            $0.access.playFrom.append(CIDR.address([192, 0, 2, 7]))
            $0.access.apiFrom.append(CIDR.address([192, 0, 2, 7]))
        }) { server in
            try await Proxy.run(to: server.addresses.http.port, client: isTrusted ? "192.0.2.7" : "$proxy_add_x_forwarded_for") { proxy in
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
                    for (format, transport) in [("flv", "http-flv"), ("m3u8", "hls"), ("mp4", "http-fmp4")] {
                        let played = ["ffmpeg", "-v", "error", "-i", "\(proxy)/live/cam1.\(format)", "-t", "1", "-f", "null", "-"]
                        let outcome = try await ClientProcess.run(played)
                        #expect(outcome.status == 0, "\(format): \(outcome.errors)")
                        #expect(await server.lines.comes("Play started", "remote=192.0.2.7", "transport=\(transport)"))
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
    static func run(to port: Int, client: String, _ body: (String) async throws -> Void) async throws {
        try await Fixture.withDirectory { directory in
            let own = try await FreePort.reserve()
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
                            proxy_set_header X-Forwarded-For \(client);
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
