import Crypto
import Foundation
import ServerTestSupport
import TestSupport
import Testing

/// Who may use the apps' interfaces after a reload.
@Suite struct ReloadAppTests {
    @Test func addresses() async throws {
        try await ReloadingServer.run { server in
            func post(_ path: String) async throws -> HTTPAnswer {
                try await HTTPAnswer.call(
                    "POST", "\(server.http)\(path)", body: Data(), headers: ["Content-Type": "application/x-www-form-urlencoded"])
            }
            /// Whether a peer may come into the mesh, may ask for a guest's account, manage machines, call on classes, call the cloud's API.
            func admitted() async throws -> [Bool] {
                let mesh = try? await WebSocketClient.open(server.httpPort, "/mesh")
                await mesh?.close()
                let guest = try await post("/dollsCatcher/tourist").json()["code"].int
                let host = try await post("/dollsCatcher/host/query?roomId=1").json()["code"].int
                let classes = try await HTTPAnswer.get("\(server.http)/classroom/api/v1/none").text
                let cloud = try await HTTPAnswer.get("\(server.http)/?Action=DescribeLiveStreamState&Version=2018-08-01").text
                return [
                    mesh != nil, guest == 200, host != 403, !classes.contains("apps.classroom.from"), !cloud.contains("apps.tencent.from"),
                ]
            }
            #expect(try await admitted() == [true, true, true, true, true])
            try await server.apply(["apps.mesh.from": "[]", "apps.machine.hostFrom": "[]"])
            #expect(try await admitted() == [false, true, false, true, true])
            try await server.apply(["apps.machine.from": "[]", "apps.classroom.from": "[]", "apps.tencent.from": "[]"])
            #expect(try await admitted() == [true, false, true, false, false])
        }
    }

    /// ICE servers and their credentials, for whoever asks after the reload.
    @Test func iceServers() async throws {
        try await ReloadingServer.run { server in
            func servers() async throws -> JSON { try await HTTPAnswer.get("\(server.http)/mesh/ice").json()["iceServers"] }
            func expires() async throws -> Int { try Int(await servers()[0]["username"].string.orThrow()).orThrow() }
            #expect(try await servers().list.isEmpty)
            try await server.apply(["ice.urls": "[\"turn:t.example\"]", "ice.username": "mesh", "ice.credential": "one"])
            let fixed = try await servers()[0]
            #expect(
                fixed["urls"][0].string == "turn:t.example" && fixed["username"].string == "mesh" && fixed["credential"].string == "one")
            try await server.apply(["ice.urls": "[\"turn:t.example\"]", "ice.secret": "a-shared-secret"])
            let now = Int(Date().timeIntervalSince1970)
            #expect(abs(try await expires() - now - 43_200) < 600)
            try await server.apply(["ice.urls": "[\"turn:t.example\"]", "ice.secret": "a-shared-secret", "ice.lifetime": "1h"])
            #expect(abs(try await expires() - now - 3_600) < 600)
            try await server.apply(["ice.lifetime": "1h"])
            #expect(try await servers().list.isEmpty)
        }
    }

    /// The domains of the cloud's API.
    @Test func domains() async throws {
        try await Fixture.withDirectory { directory in
            try await ReloadingServer.run(in: directory) { server in
                let data = directory.appendingPathComponent("data").path
                let made = try await EarshotProcess.command(["keys", "create", "shop", "--role", "ops", "--data", data, "--json"])
                #expect(made.status == 0, "\(made.errors)")
                let key = JSON(try JSONSerialization.jsonObject(with: made.output))
                let (id, secret) = (try key["secretId"].string.orThrow(), try key["secretKey"].string.orThrow())
                /// The answer to a call that names this domain, signed as the cloud's documentation says.
                func call(_ domain: String) async throws -> JSON {
                    var fields = [
                        "Action": "DescribeLiveStreamState", "AppName": "live", "DomainName": domain, "StreamName": "cam1",
                        "Version": "2018-08-01", "Timestamp": "\(Int(Date().timeIntervalSince1970))", "Nonce": "7", "SecretId": id,
                        "SignatureMethod": "HmacSHA256",
                    ]
                    func query(_ escaped: Bool) -> String {
                        fields.sorted { $0.key < $1.key }.map { name, value in
                            "\(name)=\(escaped ? value.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "" : value)"
                        }.joined(separator: "&")
                    }
                    let text = "GET\(server.http.dropFirst("http://".count))/?\(query(false))"
                    let code = HMAC<SHA256>.authenticationCode(for: Data(text.utf8), using: SymmetricKey(data: Data(secret.utf8)))
                    fields["Signature"] = Data(code).base64EncodedString()
                    return try await HTTPAnswer.get("\(server.http)/?\(query(true))").json()["Response"]
                }
                #expect(try await call("push.example.com")["StreamState"].string == "inactive")
                try await server.apply(["apps.tencent.domains": "[live.example.com]"])
                #expect(try await call("push.example.com")["Error"]["Message"].string?.contains("push.example.com") == true)
                #expect(try await call("live.example.com")["StreamState"].string == "inactive")
            }
        }
    }
}
