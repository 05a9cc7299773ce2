import APITestSupport
import Access
import Foundation
import HTTPTypes
import RoomRegistry
import Rooms
import ServerData
import ServerTestSupport
import Store
import Streaming
import Support
import TestSupport
import Testing

@testable import ControlAPI
@testable import HTTPAPI
@testable import EarshotServer
@testable import ServerConfiguration

/// Access by role and token.
@Suite struct APIAccessTests {
    private func token(_ role: TokenRole, _ api: CheckedAPI) async throws -> String {
        try await api.ok("POST", "tokens", #"{"name":"\#(role.rawValue)-test","role":"\#(role.rawValue)"}"#, status: 201)["secret"].string
            .orThrow()
    }

    /// A path of this call, with a body that fails only after the role check. Trying it changes nothing.
    private func harmless(_ route: APIRoute) -> (path: String, body: String?) {
        let parts = route.parts.map { part in
            switch part {
            case .literal(let text): text
            case .parameter: "999999"
            }
        }
        return (parts.joined(separator: "/"), route.body == nil ? nil : #"{"nothing":1}"#)
    }

    /// Every call with every role: the server enforces the document's x-role, and 403 names the role that is needed.
    @Test func rolesAreAskedFor() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            let tokens = [
                TokenRole.backend: try await self.token(.backend, api), .ops: try await self.token(.ops, api), .admin: server.token,
            ]
            for route in APIRoute.all {
                let (path, body) = self.harmless(route)
                guard let needed = route.role else {
                    #expect(try await api(route.method.rawValue, path, token: "").status == 200, "\(route.name)")
                    continue
                }
                let none = try await api(route.method.rawValue, path, body, token: "")
                #expect(none.status == 401, "\(route.name): \(none.text)")
                for (role, token) in tokens {
                    let answer = try await api(route.method.rawValue, path, body, token: token)
                    if role < needed {
                        #expect(answer.status == 403, "\(route.name) as \(role): \(answer.text)")
                        #expect(try answer.json()["message"].string?.contains("role \(needed.rawValue)") == true)
                        #expect(try answer.json()["error"]["rule"].string == "role \(needed.rawValue)")
                    } else {
                        #expect(
                            answer.status != 401 && answer.status != 403 && answer.status < 500, "\(route.name) as \(role): \(answer.text)")
                    }
                }
            }
        }
    }

    /// The calls of each role by name. A change of the table shows up here.
    @Test func rolesAreAsTheyShouldBe() {
        let admin = Set(APIRoute.all.filter { $0.role == .admin }.map(\.name))
        #expect(
            admin == [
                "deleteRoom", "listSettings", "reloadSettings", "drainServer", "drainNode", "listTokens", "createToken", "revokeToken",
                "createLink",
                "deleteLink", "listAudit", "listWebhooks",
                "createWebhook",
                "getWebhook", "updateWebhook", "deleteWebhook", "pauseWebhook", "resumeWebhook", "testWebhook",
            ])
        let backend = Set(APIRoute.all.filter { $0.role == .backend }.map(\.name))
        #expect(
            backend == [
                "createRoom", "listRooms", "getRoom", "getSnapshot", "listSnapshots", "downloadSnapshot", "updateRoom", "closeRoom",
                "renewRoom", "sendHeartbeat", "pauseRoom",
                "likeRoom",
                "joinRoom",
                "leaveRoom", "listMembers", "kickMember", "makePushUrl", "makePlayUrls", "drawPushUrl", "paintPushUrl", "listEvents",
                "listRoomEvents", "makeSnapshotUrl",
                "makeEventTicket", "getTalk", "changeTalk", "changeFloor", "muteTalker", "kickTalker", "allowTalker", "makeTalkToken",
                "getStream", "dropStream", "recordRoom", "listGatherings", "getGathering", "pauseQueue", "resumeQueue", "removeFromQueue",
                "makeChannelToken",
            ])
        #expect(APIRoute.all.filter { $0.role == nil }.map(\.name) == ["getOpenAPI"])
    }

    /// An app's back end operates its own rooms: drops, records and sees the health of those that its token created, by its name, and nobody else's.
    @Test func aBackEndOperatesItsOwnRooms() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            var secrets: [String: String] = [:]
            for name in ["one", "two"] {
                let made = try await api.ok("POST", "tokens", #"{"name":"\#(name)","role":"backend"}"#, status: 201)
                secrets[name] = try made["secret"].string.orThrow()
            }
            let (one, two) = (try secrets["one"].orThrow(), try secrets["two"].orThrow())
            _ = try await api.ok("POST", "rooms", #"{"roomId":"r1"}"#, status: 201, token: one)
            let state = try await api.ok("GET", "streams/live/r1", token: one)
            #expect(state["state"].string == "inactive", "\(state)")
            #expect(try await api.ok("POST", "streams/live/r1/drop", token: one)["wasDropped"].bool == false)
            // Not live, which its own token is told.
            try await api.refused(409, "POST", "rooms/r1/record", #"{"action":"start"}"#, token: one)
            // Another's.
            try await api.refused(403, "GET", "streams/live/r1", token: two)
            try await api.refused(403, "POST", "streams/live/r1/drop", token: two)
            try await api.refused(403, "POST", "rooms/r1/record", #"{"action":"start"}"#, token: two)
            // A stream without a room, and a room that an admin made.
            try await api.refused(404, "GET", "streams/live/none", token: one)
            _ = try await api.ok("POST", "rooms", #"{"roomId":"r2"}"#, status: 201)
            try await api.refused(403, "POST", "streams/live/r2/drop", token: one)
            _ = try await api.ok("GET", "streams/live/r1")
        }
    }

    @Test func badTokensAreRefused() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            for header in [
                "", "Bearer", "Bearer ", "Basic \(server.token)", "\(server.token)", "Bearer \(server.token)x",
                "Bearer \(server.token.dropLast())",
                "Bearer \(server.token.uppercased())", "Bearer earshot_' OR '1'='1", "Bearer \(server.token) x",
                "Bearer \(String(repeating: "x", count: 5_000))",
            ] {
                let answer = try await api("GET", "rooms", token: "", headers: header.isEmpty ? [:] : ["Authorization": header])
                #expect(answer.status == 401, "\(header.prefix(40)): \(answer.text)")
                #expect(answer.headers["www-authenticate"]?.hasPrefix("Bearer realm=\"earshot\"") == true)
                #expect(!answer.text.contains(server.token.suffix(8)), "the secret is told back")
            }
            // The scheme's case does not matter.
            #expect(try await api("GET", "rooms", token: "", headers: ["Authorization": "bEARER \(server.token)"]).status == 200)
            #expect(!server.lines.all.contains { $0.contains(server.token) })
        }
    }

    @Test func aRevokedTokenIsRefusedAtOnce() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            let made = try await api("POST", "tokens", #"{"name":"x","role":"backend"}"#)
            let data = try made.json()["data"]
            let secret = try data["secret"].string.orThrow()
            let id = try data["tokenId"].int.orThrow()
            #expect(made.headers["location"] == "/api/v1/tokens/\(id)")
            #expect(secret.hasPrefix("earshot_") && secret.utf8.count == 40)
            try await api.ok("GET", "rooms", token: secret)
            let list = try await api("GET", "tokens")
            #expect(!list.text.contains(secret) && !list.text.contains(server.token))
            #expect(try list.json()["data"]["list"].list.map(\.["name"].string) == ["first", "x"])
            let revoked = try await api.ok("DELETE", "tokens/\(id)")
            #expect(!revoked["revokedAt"].isNull)
            try await api.refused(401, "GET", "rooms", token: secret)
        }
    }

    /// Twenty failures throttle the address, but not a token that worked before.
    @Test func searchingForATokenIsHeldBack() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            try await api.ok("GET", "rooms")
            let other = try await self.token(.backend, api)
            var statuses: [Int] = []
            let began = ContinuousClock.now
            for index in 0..<30 { statuses.append(try await api("GET", "rooms", token: "earshot_guess\(index)").status) }
            // A try is given back each five seconds.
            let more = Int((ContinuousClock.now - began) / .seconds(5)) + 1
            #expect(statuses.prefix(20).allSatisfy { $0 == 401 }, "\(statuses)")
            #expect(statuses.dropFirst(20).count { $0 == 401 } <= more && statuses.contains(429), "\(statuses)")
            var held = try await api("GET", "rooms", token: "earshot_again")
            while held.status != 429 { held = try await api("GET", "rooms", token: "earshot_again") }
            // A request without a token is no guess and needs no store lookup.
            #expect(try await api("GET", "rooms", token: "").status == 401)
            #expect((held.headers["retry-after"].flatMap { Int($0) } ?? 0) >= 1)
            // The server has not seen this token work yet, so it is throttled too.
            let isHeld = try await api("GET", "rooms", token: other).status == 429
            #expect(isHeld || ContinuousClock.now - began > .seconds(5))
            try await api.ok("GET", "rooms")
        }
    }

    @Test func aTokenHasSoManyCallsASecond() async throws {
        try await UnboundServer.run({ $0.api.rateLimit = 1 }) { server in
            let api = try await CheckedAPI(server)
            var answers: [HTTPAnswer] = []
            for _ in 0..<12 { answers.append(try await api("GET", "counters")) }
            #expect(answers[0].headers["ratelimit-limit"] == "2")
            #expect(answers[0].headers["ratelimit-policy"] == "2;w=2")
            #expect(answers[0].headers["ratelimit-remaining"] == "1")
            let refused = try answers.first { $0.status == 429 }.orThrow()
            #expect((refused.headers["retry-after"].flatMap { Int($0) } ?? 0) >= 1)
            #expect(refused.headers["ratelimit-remaining"] == "0")
            #expect(try refused.json()["error"]["type"].string == "rate_limited")
            #expect(answers.prefix(2).allSatisfy { $0.status == 200 })
            // The bucket refills.
            try await eventually("another call") { try await api("GET", "counters").status == 200 }
        }
    }

    @Test func theDocumentIsForEverybodyInside() async throws {
        try await UnboundServer.run { server in
            let answer = try await server.call("GET", "openapi.json", token: "")
            #expect(answer.status == 200)
            #expect(answer.contentType == "application/json")
            #expect(answer.body == Data(OpenAPIDocument.bytes))
        }
        let elsewhere = [try CIDR(parsing: "10.0.0.0/8")]
        try await UnboundServer.run({ $0.access.apiFrom = elsewhere }) { server in
            let answer = try await server.call("GET", "openapi.json", token: "")
            #expect(answer.status == 403)
        }
    }
}

/// The token that the first start creates.
@Suite struct APIFirstTokenTests {
    @Test func theFirstStartMakesOneAndLaterOnesDoNot() async throws {
        try await Fixture.withDirectory { directory in
            let data = directory.appendingPathComponent("data").path
            let first = try await UnboundServer.run(data: data) { server in
                let mode = try FileManager.default.attributesOfItem(atPath: "\(data)/admin-token")[.posixPermissions] as? Int
                #expect(mode == 0o600)
                let tokens = try await server.api("tokens")["list"]
                #expect(tokens.count == 1)
                #expect(tokens[0]["name"].string == "first" && tokens[0]["role"].string == "admin")
                return server.token
            }
            let second = try await UnboundServer.run(data: data) { server in
                let tokens = try await server.api("tokens")
                #expect(tokens["total"].int == 1)
                return server.token
            }
            #expect(first == second)
            // The store holds only the token's hash.
            for name in try FileManager.default.contentsOfDirectory(atPath: data) where name != "admin-token" {
                let bytes = try Data(contentsOf: URL(fileURLWithPath: "\(data)/\(name)"))
                #expect(bytes.range(of: Data(first.utf8)) == nil, "\(name) holds the secret")
            }
        }
    }

    /// A server killed after writing the file and before storing the token: the next start makes both.
    @Test func aFileWhoseTokenWasNotMadeIsReplaced() async throws {
        try await Fixture.withDirectory { directory in
            let data = directory.appendingPathComponent("data").path
            try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: true)
            try "earshot_nobody\n".write(toFile: "\(data)/admin-token", atomically: true, encoding: .utf8)
            try await UnboundServer.run(data: data) { server in
                #expect(server.token != "earshot_nobody")
                #expect(server.server.tokenFile == "\(data)/admin-token")
                let tokens = try await server.api("tokens")["list"]
                #expect(tokens.count == 1)
            }
        }
    }

    /// After the last token is revoked, a restart makes another one. Only those who can read the store anyway can read the file.
    @Test func whenNoneIsValidAnotherIsMade() async throws {
        try await Fixture.withDirectory { directory in
            let data = directory.appendingPathComponent("data").path
            let first = try await UnboundServer.run(data: data) { server in
                let gone = try await server.call("DELETE", "tokens/1")
                #expect(gone.status == 200)
                return server.token
            }
            try await UnboundServer.run(data: data) { server in
                #expect(server.token != first)
                let statuses = (try await server.call("GET", "tokens").status, try await server.call("GET", "tokens", token: first).status)
                #expect(statuses == (200, 401))
            }
        }
    }

    /// A full disk or `> admin-token` leaves the file empty. Without a new token the command line would be locked out for good.
    @Test(arguments: ["", "\n", " \r\n\t"]) func anEmptyFileGetsAnotherToken(_ content: String) async throws {
        try await Fixture.withDirectory { directory in
            let data = directory.appendingPathComponent("data").path
            let first = try await UnboundServer.run(data: data) { $0.token }
            try content.write(toFile: "\(data)/admin-token", atomically: false, encoding: .utf8)
            let second = try await UnboundServer.run(data: data) { server in
                #expect(await server.lines.comes("warning", "admin-token"))
                // The old token stays valid where it was copied to.
                let statuses = (try await server.call("GET", "tokens").status, try await server.call("GET", "tokens", token: first).status)
                #expect(statuses == (200, 200))
                return server.token
            }
            #expect(first != second && !second.isEmpty)
            try await UnboundServer.run(data: data) { #expect($0.token == second) }
        }
    }

    @Test func aFileThatCannotBeWrittenIsSaidAndLeavesNoToken() async throws {
        try await Fixture.withDirectory { directory in
            let registry = try RoomRegistry(.folder(directory.path), settings: .init())
            try await registry.start()
            // A folder in the file's place makes the write fail. File modes would not stop root.
            try FileManager.default.createDirectory(
                at: directory.appendingPathComponent("admin-token/x"), withIntermediateDirectories: true)
            await #expect(throws: (any Error).self) { try await FirstToken.ensure(registry, directory: directory.path) }
            #expect(try await registry.tokens().isEmpty)
            try FileManager.default.removeItem(at: directory.appendingPathComponent("admin-token"))
            #expect(try await FirstToken.ensure(registry, directory: directory.path) == "\(directory.path)/admin-token")
            await registry.stop()
        }
    }
}
