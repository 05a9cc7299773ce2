import APITestSupport
import EarshotServer
import Foundation
import HTTPTypes
import Rooms
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import ControlAPI
@testable import HTTPAPI
@testable import ServerConfiguration

/// The names in error messages, on a server without a port.
@Suite struct APIMissingNameTests {
    /// A 404 names the missing thing as the call's path parameter does.
    @Test func whatIsMissingIsNamedAsTheCallNamesIt() async throws {
        let values = [
            "roomId": "nowhere", "userId": "nobody", "sessionId": "999999", "linkId": "999999", "deliveryId": "999999", "tokenId": "999999",
            "node": "nowhere",
            "webhookId": "999999", "gatheringId": "plain-nowhere",
            "recordingId": "0123456789abcdef", "snapshotId": "0123456789abcdef", "app": "live", "name": "nothing",
        ]
        try await UnboundServer.run({ $0.talk.always = true }) { server in
            let api = try await CheckedAPI(server)
            var named: Set<String> = []
            for route in APIRoute.all where !route.pathForm.inputs.isEmpty {
                let path = try route.parts.map { part in
                    switch part {
                    case .literal(let text): text
                    case .parameter(let name): try values[name].orThrow()
                    }
                }.joined(separator: "/")
                // Some calls need a body.
                let bodies: [String?] = [
                    nil, #"{"userId":"nobody","action":"release"}"#, #"{"action":"start"}"#, #"{"muted":true}"#, #"{"role":"backend"}"#,
                    #"{"key":"nobody"}"#, #"{"userId":"nobody"}"#,
                ]
                for body in bodies.prefix(route.body == nil ? 1 : bodies.count) {
                    let answer = try await api(route.method.rawValue, path, body)
                    guard answer.status == 404 else { continue }
                    let error = try answer.json()["error"]
                    let field = try error["field"].string.orThrow()
                    #expect(route.pathForm.inputs.contains { $0.name == field }, "\(route.name): \(field)")
                    #expect(error["value"].string == (field == "name" ? "live/nothing" : values[field]), "\(route.name)")
                    named.insert(field)
                    break
                }
            }
            try await api.ok("POST", "rooms", #"{"roomId":"r1"}"#, status: 201)
            let missing = try await api.refused(404, "POST", "rooms/r1/leave", #"{"userId":"nobody"}"#)
            #expect(missing["field"].string == "userId" && missing["value"].string == "nobody")
            let kicked = try await api.refused(404, "POST", "rooms/r1/talk/members/nobody/kick")
            #expect(kicked["field"].string == "userId")
            #expect(
                named.isSuperset(of: [
                    "roomId", "sessionId", "linkId", "deliveryId", "tokenId", "recordingId", "snapshotId", "name", "gatheringId", "node",
                ]),
                "\(named)")
        }
    }
}
