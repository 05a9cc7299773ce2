import APITestSupport
import EarshotServer
import RTMP
import RTMPTestSupport
import ServerTestSupport
import Testing

@testable import ServerConfiguration
@testable import Support

extension Hostile {
    /// Attacks before and during the handshake and connect.
    @Suite struct Opening {
        @Test func randomBytes() async throws {
            try await UnboundServer.withCanary { server in
                var random = SeededRandom(1)
                for _ in 0..<10 {
                    let client = try await RawClient.open(server.port)
                    // C0 of another version; 3 would be valid.
                    await client.send(bytes: [UInt8.random(in: 4...255, using: &random)] + random.bytes(4_000))
                    try await server.expectClosed(client, .notRTMP)
                }
                for _ in 0..<10 {
                    let client = try await RawClient.shaken(server.port)
                    // A chunk stream cannot begin with fmt 3.
                    await client.send(bytes: [0xC3] + random.bytes(4_000))
                    try await server.expectClosed(client, .protocolError)
                }
                try await server.expectConnections(2)
            }
        }

        @Test func otherProtocols() async throws {
            try await UnboundServer.withCanary { server in
                let hellos = [
                    "GET / HTTP/1.1\r\nHost: cam\r\n\r\n", "POST /open/1 HTTP/1.1\r\n\r\n", "\u{16}\u{3}\u{1}\u{2}", "SSH-2.0-x\r\n",
                ]
                for hello in hellos {
                    let client = try await RawClient.open(server.port)
                    await client.send(bytes: Array(hello.utf8))
                    try await server.expectClosed(client, .notRTMP)
                }
                #expect(await server.lines.comes("Connection closed", "HTTP request"))
                #expect(await server.lines.comes("Connection closed", "TLS hello"))
            }
        }

        @Test func deepAMF() async throws {
            try await UnboundServer.withCanary { server in
                let openings: [[UInt8]] = [
                    [3, 0, 1, 0x61],  // object, property "a"
                    [8, 0, 0, 0, 1, 0, 1, 0x61],  // ECMA array
                    [10, 0, 0, 0, 1],  // strict array
                    [17, 9, 3, 1],  // AMF3 array, over and over
                ]
                for opening in openings {
                    let client = try await RawClient.shaken(server.port)
                    var payload: [UInt8] = [2, 0, 7] + Array("connect".utf8) + [0, 0x3F, 0xF0, 0, 0, 0, 0, 0, 0]
                    for _ in 0..<min(10_000, (60_000 - payload.count) / opening.count) { payload += opening }
                    client.send(.commandAMF0, payload, on: 0)
                    try await server.expectClosed(client, .protocolError)
                }
            }
        }

        @Test func lyingCountsInConnect() async throws {
            try await UnboundServer.withCanary { server in
                let head: [UInt8] = [2, 0, 7] + Array("connect".utf8) + [0, 0x3F, 0xF0, 0, 0, 0, 0, 0, 0]
                let lies: [[UInt8]] = [
                    [10, 0xFF, 0xFF, 0xFF, 0xFF],  // four thousand million entries
                    [12, 0xFF, 0xFF, 0xFF, 0xFF, 0x61],  // a long string of 4 GiB
                    [2, 0xFF, 0xFF, 0x61],
                    [3, 0xFF, 0xFF, 0x61],
                    [17, 9, 0xFF, 0xFF, 0xFF, 0xFF],
                    [17, 6, 0x7F],
                ]
                for lie in lies {
                    let client = try await RawClient.shaken(server.port)
                    client.send(.commandAMF0, head + lie, on: 0)
                    try await server.expectClosed(client, .protocolError)
                }
                // A reference to nothing is a valid value, but no object with an app.
                let reference = try await RawClient.shaken(server.port)
                reference.send(.commandAMF0, head + [7, 0xFF, 0xFF], on: 0)
                try await server.expectClosed(reference, .badName)
                // A count that is too large is a mere hint (AMF0 §2.10): only the entries that follow matter.
                let hint = try await RawClient.shaken(server.port)
                var object: [UInt8] = [8, 0xFF, 0xFF, 0xFF, 0xFF, 0, 3] + Array("app".utf8) + [2, 0, 4] + Array("live".utf8)
                object += [0, 0, 9]
                hint.send(.commandAMF0, head + object, on: 0)
                try await hint.waitForStatus(StatusCode.connectSuccess)
                await hint.close()
            }
        }
    }
}
