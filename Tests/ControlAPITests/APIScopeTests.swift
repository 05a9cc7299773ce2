import APITestSupport
import Foundation
import HTTPTypes
import RoomRegistry
import Rooms
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import ControlAPI
@testable import HTTPAPI
@testable import EarshotServer
@testable import ServerConfiguration

/// Tokens with limits: they see and change their own, and learn nothing of the rest.
@Suite struct APIScopeTests {
    /// Every call's reach fits its parameters.
    @Test(arguments: APIRoute.all.map(\.name)) func everyCallIsDecided(_ name: String) throws {
        let route = try APIRoute.all.first { $0.name == name }.orThrow()
        let parameters = Set(route.pathForm.inputs.map(\.name))
        switch route.reach {
        case .room: #expect(parameters.contains("roomId"))
        case .stream: #expect(parameters.isSuperset(of: ["app", "name"]))
        case .thing: #expect(!parameters.isEmpty && !parameters.contains("roomId"))
        case .list: #expect(parameters.isEmpty && route.method == .get)
        case .creation: #expect(parameters.isEmpty && route.method == .post)
        case .anyone: #expect(route.role == nil)
        case .server: break
        }
    }

    /// Creating something outside of the token's scope is refused, and the error says what would be accepted.
    @Test func creationOutsideIsForbidden() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            let token = try await api.limitedToken(#""rooms":["acme-"],"apps":["live"]"#)
            for body in [#"{"roomId":"zulu"}"#, #"{"roomId":"acme"}"#, #"{"roomId":"acme-1","app":"other"}"#] {
                let error = try await api.refused(403, "POST", "rooms", body, token: token)
                #expect(error["rule"].string == "expected app live and a name that begins with acme-", "\(error)")
            }
            try await api.refused(
                403, "POST", "links", #"{"direction":"pull","app":"live","name":"zulu","url":"rtmp://192.0.2.1/a/b"}"#, token: token)
            try await api.ok("POST", "rooms", #"{"roomId":"zulu","deviceUid":"cam"}"#, status: 201)
            try await api.refused(404, "POST", "events/ticket", #"{"roomId":"zulu"}"#, token: token)
            // The answer does not name the other room.
            let taken = try await api("POST", "rooms", #"{"roomId":"acme-1","deviceUid":"cam"}"#, token: token)
            #expect(taken.status == 409 && !taken.text.contains("zulu"), "\(taken.text)")
            // Nor is the device's former room revived.
            try await api.ok("POST", "rooms/zulu/close")
            let room = try await api.ok("POST", "rooms", #"{"deviceUid":"cam"}"#, status: 201, token: token)
            #expect(room["roomId"].string?.hasPrefix("acme-") == true)
            for limits in [#""rooms":["a b"]"#, #""rooms":[""]"#, #""apps":"live""#] {
                try await api.refused(400, "POST", "tokens", #"{"name":"x","role":"backend",\#(limits)}"#)
            }
            let list = try await api.ok("GET", "tokens")["list"]
            #expect(list[1]["rooms"].list.map(\.string) == ["acme-"] && list[1]["apps"].list.map(\.string) == ["live"])
        }
    }
}
