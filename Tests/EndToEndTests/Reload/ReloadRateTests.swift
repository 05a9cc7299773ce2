import Access
import Foundation
import ServerTestSupport
import TestSupport
import Testing

/// Numbers of connections, pushes and rooms, changed by a reload.
@Suite struct ReloadRateTests {
    /// Pushes once to each name, all at once and on connections of their own; returns the refusals.
    private static func refusals(_ server: ReloadingServer, _ names: [String]) async throws -> [String] {
        try await withThrowingTaskGroup(of: String?.self) { group in
            for name in names { group.addTask { try await server.refusal(.publish, name) } }
            return try await group.reduce(into: []) { if let refusal = $1 { $0.append(refusal) } }
        }
    }

    private static func names(_ prefix: String, _ count: Int = 60, _ query: (String) -> String = { _ in "" }) -> [String] {
        (0..<count).map { "\(prefix)\($0)\(query("\(prefix)\($0)"))" }
    }

    /// A burst is ten times the rate for pushes, twenty times for rooms.
    @Test func rates() async throws {
        // One user, whose tokens open streams of many names.
        let expires = Int(Date().timeIntervalSince1970) + 600
        @Sendable func token(_ name: String) -> String {
            "?token=" + TestCredential.token(#"{"exp":\#(expires),"sub":"ada","room":"\#(name)","act":"publish"}"#)
        }
        let key = TestCredential.keys.jwtKey
        try await ReloadingServer.run(["credentials.jwtKey": key]) { server in
            #expect(try await Self.refusals(server, Self.names("a", 24, token)).isEmpty, "by default")
            func areRefused(_ names: [String], _ limit: String) async throws {
                let refusals = try await Self.refusals(server, names)
                #expect(!refusals.isEmpty && refusals.allSatisfy { $0.contains(limit) }, "\(limit): \(refusals)")
            }
            try await server.apply(["credentials.jwtKey": key, "limits.publishesPerCredential": "1"])
            try await areRefused(Self.names("b", 60, token), "limits.publishesPerCredential")
            try await server.apply([
                "credentials.jwtKey": key, "limits.roomsPerCredential": "1", "limits.publishesPerCredential": "1000",
            ])
            try await areRefused(Self.names("c", 60, token), "limits.roomsPerCredential")
            try await server.apply(["limits.roomsPerAddress": "1"])
            try await areRefused(Self.names("d"), "limits.roomsPerAddress")
        }
    }

    @Test func connections() async throws {
        try await ReloadingServer.run { server in
            try await server.apply(["limits.connections": "2", "limits.handshake": "5m", "limits.connect": "5m"])
            let admitted = [try await RawClient.shaken(server.rtmpPort), try await RawClient.shaken(server.rtmpPort)]
            let third = try await RawClient.open(server.rtmpPort)
            try await eventually("the end of the first") { admitted[0].isClosed }
            try await server.logs("Connection closed", "reason=too_many_connections")
            for client in [admitted[1], third] { await client.close() }
        }
    }

    /// The time to connect, and who may play at all.
    @Test func strangers() async throws {
        try await ReloadingServer.run(["limits.connect": "1h"]) { server in
            #expect(try await server.refusal(.play, "cam1") == nil)
            try await server.apply(["access.playFrom": "[]"])
            #expect(try await server.refusal(.play, "cam1")?.contains("credential") == true)
            try await server.apply(["limits.connect": "300ms"])
            let idle = try await RawClient.shaken(server.rtmpPort)
            try await eventually("its end") { idle.isClosed }
            try await server.logs("Connection closed", "reason=connect_timeout")
        }
    }
}
