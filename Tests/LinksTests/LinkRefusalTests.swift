import PortlessTestSupport
import ServerTestSupport
import Support
import TestSupport
import Testing

/// Links to other servers, by the API.
@Suite struct LinkRefusalTests {
    /// Impossible links are refused at once, others fail when tried; nobody else is disturbed.
    @Test func refusals() async throws {
        try await PortlessServer.run { server in
            for (body, status, words) in [
                (#"{"direction":"push","app":"live","name":"a","url":"http://example.com/live/a"}"#, 400, "rtmp"),
                (#"{"direction":"push","app":"live","name":"a","url":"rtmp://example.com/live/a swfUrl=x"}"#, 400, "url"),
                (#"{"direction":"sideways","app":"live","name":"a","url":"rtmp://example.com/live/a"}"#, 400, "direction"),
                (#"{"direction":"pull","app":"talk","name":"r/a","url":"rtmp://example.com/live/a"}"#, 400, "talk channels"),
                (#"{"direction":"push","app":"live","name":"../a","url":"rtmp://example.com/live/a"}"#, 400, "name"),
            ] {
                let answer = try await server.call("POST", "links", body)
                #expect(answer.status == status && answer.text.contains(words), "\(body): \(answer.text)")
            }
            // Without outbound.allowPrivate the server reaches no private address.
            for (host, words) in [
                ("127.0.0.1", "127.0.0.1 is loopback"), ("[::1]", "[::1] is loopback"), ("[fd00::1]", "[fd00::1] is private"),
                ("[::ffff:10.0.0.1]", "is private"), ("[fe80::1]", "is link-local"), ("[fe80::1%eth0]", "no IPv6 address"),
                ("[64:ff9b::a00:1]", "is private"), ("[2002:a00:1::1]", "is private"), ("[2001:0:1:2::3]", "is reserved"),
                ("[::]", "is unspecified"), ("[::ffff:169.254.169.254]", "is link-local"),
            ] {
                for direction in ["push", "pull"] {
                    let literal = try await server.call(
                        "POST", "links", #"{"direction":"\#(direction)","app":"live","name":"a","url":"rtmp://\#(host):9/live/b"}"#)
                    #expect(literal.status == 400 && literal.text.contains(words), "\(host): \(literal.text)")
                }
            }
            let port = server.addresses.rtmp.port
            let id = try await server.makeLink("pull", "a", "rtmp://localhost:\(port)/live/b")
            try await server.wait("links/\(id)") { $0["state"].string == "failed" }
            #expect(try await server.api("links/\(id)")["lastError"].string?.contains("127.0.0.1") == true)
            let again = try await server.call(
                "POST", "links", #"{"direction":"push","app":"live","name":"a","url":"rtmp://localhost:\#(port)/live/b"}"#)
            #expect(again.status == 409 && again.text.contains("loop"), "\(again.text)")
        }
    }
}
