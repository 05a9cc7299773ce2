import APITestSupport
import EarshotServer
import Foundation
import RoomRegistry
import Rooms
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

/// Logging in to the console, and what its cookie is good for. What a page shows is for Tests/Console.
@Suite struct ConsoleLoginTests {
    private struct Login {
        let cookie: String
        let csrf: String
        let role: String?

        /// The headers of the page's own requests.
        var headers: [String: String] { ["Cookie": self.cookie, "X-Csrf-Token": self.csrf, "Sec-Fetch-Site": "same-origin"] }
    }

    private func post(_ server: UnboundServer, _ path: String, _ body: String, _ headers: [String: String] = [:]) async throws -> HTTPAnswer
    {
        try await server.request("POST", "/console/\(path)", body: body, headers: headers)
    }

    private func logIn(_ server: UnboundServer, _ body: String) async throws -> Login {
        let answer = try await self.post(server, "login", body)
        try #require(answer.status == 200, "\(answer.text)")
        let header = try answer.headers["set-cookie"].orThrow()
        #expect(header.contains("HttpOnly") && header.contains("SameSite=Strict") && header.contains("Path=/"))
        let data = try answer.json()["data"]
        return Login(
            cookie: String(header.prefix { $0 != ";" }), csrf: try data["csrf"].string.orThrow(), role: data["role"].string)
    }

    /// A page that stays open prolongs its login by a POST with its proof; the cookie's time is for `ConsoleSessionTests`.
    @Test func onlyThePageProlongs() async throws {
        try await UnboundServer.run { server in
            let login = try await self.logIn(server, #"{"token":"\#(server.token)"}"#)
            func prolong(_ headers: [String: String]) async throws -> HTTPAnswer {
                try await server.request("POST", "/console/session", headers: headers)
            }
            let fresh = try await prolong(login.headers)
            #expect(fresh.status == 200 && fresh.headers["set-cookie"] == nil, "half of its time has not passed")
            #expect(try fresh.json()["data"]["csrf"].string == login.csrf)
            #expect(try await prolong(["Cookie": login.cookie, "Sec-Fetch-Site": "same-origin"]).status == 403)
            #expect(try await prolong([:]).status == 401)
            let token = try await server.api("tokens")["list"][0]["tokenId"].int.orThrow()
            #expect(try await server.call("DELETE", "tokens/\(token)").status == 200)
            #expect(try await prolong(login.headers).status == 401)
        }
    }

    @Test func aTokenOpensIt() async throws {
        try await UnboundServer.run { server in
            let login = try await self.logIn(server, #"{"token":"\#(server.token)"}"#)
            #expect(login.role == "admin")
            // The page's own calls need no other credential.
            let made = try await server.call("POST", "rooms", #"{"roomId":"den"}"#, token: "", headers: login.headers)
            #expect(made.status == 201, "\(made.text)")
            let session = try await server.request("GET", "/console/session", headers: ["Cookie": login.cookie])
            #expect(try session.json()["data"]["csrf"].string == login.csrf)
            #expect(try session.json()["data"]["rtmp"].string == server.rtmp)
            // Nobody else's requests carry the secret.
            for headers in [
                ["Cookie": login.cookie], ["Cookie": login.cookie, "Sec-Fetch-Site": "same-origin"],
                ["Cookie": login.cookie, "X-Csrf-Token": login.csrf, "Origin": "http://evil.example"],
                ["Cookie": login.cookie, "X-Csrf-Token": "guess", "Sec-Fetch-Site": "same-origin"],
            ] {
                let refused = try await server.call("POST", "rooms", #"{"roomId":"other"}"#, token: "", headers: headers)
                #expect(refused.status == 403, "\(headers): \(refused.text)")
            }
            let out = try await self.post(server, "logout", "{}", login.headers)
            #expect(out.status == 200 && out.headers["set-cookie"]?.contains("Max-Age=0") == true)
            #expect(!server.lines.contains(server.token) && !server.lines.contains(login.csrf))
            #expect(await server.lines.comes("Somebody logged in to the console", "token=first"))
        }
    }

    @Test func aCodeOpensItOnce() async throws {
        try await UnboundServer.run { server in
            let code = try await server.server.consoleCode().orThrow()
            let login = try await self.logIn(server, #"{"code":"\#(code)"}"#)
            #expect(try await server.call("GET", "tokens", token: "", headers: login.headers).status == 200)
            let again = try await self.post(server, "login", #"{"code":"\#(code)"}"#)
            #expect(again.status == 401, "\(again.text)")
            #expect(try again.json()["message"].string?.contains("already used") == true)
            #expect(!server.lines.contains(code))
        }
    }

    /// A code is for the server's own machine: behind a trusted proxy the client is somebody else.
    @Test func aCodeIsOfNoUseElsewhere() async throws {
        let everywhere = [try CIDR(parsing: "0.0.0.0/0")]
        try await UnboundServer.run({
            $0.access.trustedProxies = CIDR.loopback
            $0.access.apiFrom = everywhere
        }) { server in
            let code = try await server.server.consoleCode().orThrow()
            let elsewhere = ["X-Forwarded-For": "198.51.100.7"]
            let refused = try await self.post(server, "login", #"{"code":"\#(code)"}"#, elsewhere)
            #expect(refused.status == 403, "\(refused.text)")
            let token = try await self.post(server, "login", #"{"token":"\#(server.token)"}"#, elsewhere)
            #expect(token.status == 200)
        }
    }

    @Test func revokedTokensEndTheirLogins() async throws {
        try await UnboundServer.run { server in
            let made = try await server.server.parts.rooms.createToken(name: "desk", role: .ops)
            let login = try await self.logIn(server, #"{"token":"\#(made.secret)"}"#)
            #expect(login.role == "ops")
            #expect(try await server.call("GET", "streams", token: "", headers: login.headers).status == 200)
            #expect(try await server.call("GET", "tokens", token: "", headers: login.headers).status == 403, "the role's rights, no more")
            #expect(try await server.call("DELETE", "tokens/\(made.token.id)").status == 200)
            #expect(try await server.call("GET", "streams", token: "", headers: login.headers).status == 401)
        }
    }

    /// A login outlives a restart of the server.
    @Test func loginsOutliveARestart() async throws {
        try await Fixture.withDirectory { directory in
            let login = try await UnboundServer.run(data: directory.path) { try await self.logIn($0, #"{"token":"\#($0.token)"}"#) }
            try await UnboundServer.run(data: directory.path) { server in
                // The port is another one, and with it the cookie's name.
                let value = try #require(login.cookie.split(separator: "=", maxSplits: 1).last)
                var headers = login.headers
                (headers["Host"], headers["Cookie"]) = ("127.0.0.1:18081", "earshot-console-18081=\(value)")
                let answer = try await server.call("GET", "rooms", token: "", headers: headers)
                #expect(answer.status == 200, "\(answer.text) \(headers)")
            }
        }
    }

    @Test func badLogins() async throws {
        try await UnboundServer.run { server in
            for (body, status) in [
                ("", 400), ("[]", 400), ("{}", 400), (#"{"token":1}"#, 400), (#"{"token":"a","code":"b"}"#, 400), (#"{"user":"a"}"#, 400),
                (#"{"token":"\#(String(repeating: "a", count: 300))"}"#, 400), (#"{"token":"earshot_wrong"}"#, 401),
            ] {
                let answer = try await self.post(server, "login", body)
                #expect(answer.status == status, "\(body.prefix(40)): \(answer.text)")
                #expect(answer.headers["set-cookie"] == nil)
            }
            // A form of another site's page.
            let form = try await server.request(
                "POST", "/console/login", body: #"{"token":"\#(server.token)"}"#,
                headers: ["Content-Type": "text/plain", "Origin": "http://evil.example"])
            #expect(form.status == 403 || form.status == 415, "\(form.text)")
            let large = try await self.post(server, "login", String(repeating: " ", count: 70_000))
            #expect(large.status == 413)
        }
    }

    /// Guessing is slowed down, and a right token of somebody who has used it still works.
    @Test func guessingIsThrottled() async throws {
        try await UnboundServer.run { server in
            var statuses: [Int] = []
            for number in 0..<40 {
                let body = number % 2 == 0 ? #"{"token":"earshot_\#(number)"}"# : #"{"code":"\#(number)"}"#
                let answer = try await self.post(server, "login", body)
                statuses.append(answer.status)
                if answer.status == 429 { #expect(answer.headers["retry-after"] != nil) }
            }
            #expect(statuses.first == 401 && statuses.last == 429)
        }
    }

    /// Each login and logout has a line in the audit trail, and so has each refused login.
    @Test func loginsAreAudited() async throws {
        try await UnboundServer.run { server in
            let made = try await server.server.parts.rooms.createToken(name: "desk", role: .ops)
            let desk = try await self.logIn(server, #"{"token":"\#(made.secret)"}"#)
            #expect(try await self.post(server, "logout", "{}", desk.headers).status == 200)
            #expect(try await self.post(server, "login", #"{"token":"earshot_stranger"}"#).status == 401)
            #expect(try await self.post(server, "login", #"{"code":"nonsense"}"#).status == 401)
            #expect(try await server.call("DELETE", "tokens/\(made.token.id)").status == 200)
            #expect(try await self.post(server, "login", #"{"token":"\#(made.secret)"}"#).status == 401)
            var lines: [JSON] = []
            try await eventually("five lines") {
                lines = try await server.call("GET", "audit").json()["data"]["list"].list.filter {
                    $0["operation"].string?.hasSuffix("Console") == true
                }
                return lines.count == 5
            }
            lines.reverse()
            let (login, logout) = ("logInToConsole", "logOutOfConsole")
            #expect(lines.map(\.["operation"].string) == [login, logout, login, login, login])
            #expect(lines.map(\.["result"].string) == ["ok", "ok", "unauthorized", "unauthorized", "unauthorized"])
            #expect(lines.map(\.["token"].string) == ["desk", "desk", nil, nil, "desk"], "a revoked token has its name")
            #expect(lines[2]["tokenHash"].string?.count == 8 && lines[3]["tokenHash"].string == nil, "a code leaves nothing of itself")
            #expect(lines.allSatisfy { $0["address"].string == "127.0.0.1" && $0["requestId"].string?.isEmpty == false })
            #expect(server.lines.contains("logInToConsole") && !server.lines.contains("nonsense") && !server.lines.contains("stranger"))
        }
    }

    @Test func pagesAreFenced() async throws {
        try await UnboundServer.run { server in
            let page = try await server.request("GET", "/")
            #expect(page.status == 200 && page.contentType == "text/html; charset=utf-8")
            let policy = try page.headers["content-security-policy"].orThrow()
            for rule in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"] {
                #expect(policy.contains(rule))
            }
            #expect(!policy.contains("unsafe") && page.headers["x-frame-options"] == "DENY")
            #expect(page.headers["x-content-type-options"] == "nosniff" && page.headers["referrer-policy"] == "no-referrer")
            let script = try await server.request("GET", "/console/main.js")
            #expect(script.contentType == "text/javascript; charset=utf-8")
            let tag = try script.headers["etag"].orThrow()
            let again = try await server.request("GET", "/console/main.js", headers: ["If-None-Match": tag])
            #expect(again.status == 304 || again.body == script.body)
            #expect(try await server.request("GET", "/console/../secret").status == 404)
            #expect(try await server.request("GET", "/console/none.js").status == 404)
            let wrong = try await server.request("DELETE", "/")
            #expect(wrong.status == 405 && wrong.headers["allow"] == "GET, HEAD")
        }
    }

    @Test func itCanBeSwitchedOff() async throws {
        try await UnboundServer.run({ $0.console.isEnabled = false }) { server in
            let page = try await server.request("GET", "/")
            #expect(page.status == 404)
            #expect(await server.server.consoleCode() == nil)
        }
    }
}
