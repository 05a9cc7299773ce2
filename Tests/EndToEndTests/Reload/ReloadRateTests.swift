import Access
import Foundation
import ServerTestSupport
import TestSupport
import Testing

/// Numbers of connections, pushes and rooms, changed by a reload.
@Suite struct ReloadRateTests {
    private static let keys: ReloadingServer.Settings = [
        "credentials.key": TestCredential.keys.key, "credentials.jwtKey": TestCredential.keys.jwtKey,
    ]

    /// Pushes once for each name, on connections of their own; returns the first refusal.
    private static func firstRefusal(_ server: ReloadingServer, _ names: [String]) async throws -> String? {
        for name in names {
            if let refusal = try await server.refusal(.publish, name) { return refusal }
        }
        return nil
    }

    /// A burst is ten times the rate for pushes, twenty times for rooms; a slow machine gets more time in which more are allowed.
    @Test func rates() async throws {
        try await ReloadingServer.run(Self.keys) { server in
            let signed = Array(repeating: "cam1?\(TestCredential.signed("cam1"))", count: 60)
            #expect(try await Self.firstRefusal(server, Array(signed.prefix(12))) == nil, "by default")
            try await server.apply([
                "credentials.key": TestCredential.keys.key, "credentials.jwtKey": TestCredential.keys.jwtKey,
                "limits.publishesPerCredential": "1",
            ])
            #expect(try await Self.firstRefusal(server, signed)?.contains("limits.publishesPerCredential") == true)

            func anew(_ prefix: String, _ query: (String) -> String) -> [String] {
                (0..<80).map { "\(prefix)\($0)\(query("\(prefix)\($0)"))" }
            }
            #expect(try await Self.firstRefusal(server, Array(anew("a") { _ in "" }.prefix(22))) == nil, "by default")
            try await server.apply(["limits.roomsPerAddress": "1"])
            #expect(try await Self.firstRefusal(server, anew("b") { _ in "" })?.contains("limits.roomsPerAddress") == true)

            // One user, whose tokens open streams of many names.
            let expires = Int(Date().timeIntervalSince1970) + 600
            func token(_ name: String) -> String {
                "?token=" + TestCredential.token(#"{"exp":\#(expires),"sub":"ada","room":"\#(name)","act":"publish"}"#)
            }
            try await server.apply([
                "credentials.key": TestCredential.keys.key, "credentials.jwtKey": TestCredential.keys.jwtKey,
                "limits.roomsPerCredential": "1", "limits.roomsPerAddress": "1000", "limits.publishesPerCredential": "1000",
            ])
            #expect(try await Self.firstRefusal(server, anew("c", token))?.contains("limits.roomsPerCredential") == true)
        }
    }

    @Test func connections() async throws {
        try await ReloadingServer.run { server in
            try await server.apply(["limits.connections": "2", "limits.handshake": "5m", "limits.connect": "5m"])
            let admitted = [try await RawClient.shaken(server.rtmpPort), try await RawClient.shaken(server.rtmpPort)]
            let refused = try await RawClient.open(server.rtmpPort)
            try await eventually("the end of the third") { refused.isClosed }
            try await server.logs("Connection closed", "reason=too_many_connections")
            for client in admitted { await client.close() }
        }
    }

    /// The time to connect, and who may play at all.
    @Test func strangers() async throws {
        try await ReloadingServer.run(["limits.connect": "1h"]) { server in
            #expect(try await server.refusal(.play, "cam1") == nil)
            try await server.apply(["access.playFrom": "[]", "limits.connect": "300ms"])
            #expect(try await server.refusal(.play, "cam1") != nil)
            let idle = try await RawClient.shaken(server.rtmpPort)
            try await eventually("its end") { idle.isClosed }
            try await server.logs("Connection closed", "reason=connect_timeout")
        }
    }
}
