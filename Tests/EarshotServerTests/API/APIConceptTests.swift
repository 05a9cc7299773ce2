import Foundation
import HTTPTypes
import Rooms
import Support
import Testing

@testable import ControlAPI
@testable import EarshotServer
@testable import ServerConfiguration

/// Each thing has one name, in the API's whole document and in all error messages.
@Suite struct APIConceptTests {
    /// Each thing's name, and its former names. A former name appears only beside the present one, marked as deprecated.
    private static let concepts: [(name: String, formerNames: Set<String>)] = [
        ("forbiddenUntil", ["until", "resumeTime", "resumeAt", "bannedUntil", "forbidUntil"]), ("roomId", ["room", "roomID", "id"]),
        ("sessionId", ["session", "sessionID", "connection", "connectionId", "id"]), ("userId", ["user", "uid", "userID"]),
        ("callbackId", ["callback", "notice", "noticeId", "id"]), ("targetId", []),
        ("recordingId", ["recording", "recordId", "id"]),
        ("taskId", ["task", "relayTaskId", "id"]), ("tokenId", ["id"]), ("snapshotId", ["snapshot", "pictureId", "id"]),
        ("deviceUid", ["device", "deviceId", "uid"]), ("isPublic", ["public"]),
    ]
    /// Schemas that may call their own number `id`. An event has no call of its own; its number is the feed's cursor.
    private static let ownIDs: Set<String> = ["Event", "Notice"]

    private struct Names {
        /// "Room", "GET /rooms query".
        let place: String
        var all: Set<String> = []
        var deprecated: Set<String> = []
    }

    /// Collects every object of the document, and each call's parameters by location.
    private static func places(_ value: JSONValue, _ path: [String], _ found: inout [Names]) {
        switch value {
        case .object(let members):
            if case .object(let properties)? = value["properties"], value["type"] == "object" {
                var names = Names(place: path.joined(separator: " "))
                for property in properties {
                    names.all.insert(property.name)
                    if property.value["deprecated"] == true { names.deprecated.insert(property.name) }
                }
                found.append(names)
            }
            if case .array(let parameters)? = value["parameters"] {
                for place in ["path", "query"] {
                    var names = Names(place: (path + [place]).joined(separator: " "))
                    for parameter in parameters where parameter["in"] == .string(place) {
                        guard case .string(let name)? = parameter["name"] else { continue }
                        names.all.insert(name)
                        if parameter["deprecated"] == true { names.deprecated.insert(name) }
                    }
                    found.append(names)
                }
            }
            for member in members { Self.places(member.value, path + [member.name], &found) }
        case .array(let values): for value in values { Self.places(value, path, &found) }
        default: break
        }
    }

    @Test func everythingIsCalledByItsOneName() throws {
        let document = try JSONParser.parse(OpenAPIDocument.bytes)
        var found: [Names] = []
        Self.places(document, [], &found)
        #expect(found.count > 100, "\(found.count)")
        for concept in Self.concepts {
            #expect(found.contains { $0.all.contains(concept.name) }, "\(concept.name) is nowhere")
        }
        for names in found {
            // The path's last component is the schema's own name.
            let isOwn = names.place.split(separator: " ").last.map { Self.ownIDs.contains(String($0)) } ?? false
            for name in names.all {
                let concepts = Self.concepts.filter { $0.formerNames.contains(name) }
                guard !concepts.isEmpty, !(isOwn && name == "id") else { continue }
                #expect(names.deprecated.contains(name), "\(name) in \(names.place)")
                #expect(concepts.contains { names.all.contains($0.name) }, "\(name) in \(names.place) stands without its present name")
            }
            // Nothing but former names is deprecated.
            #expect(names.deprecated.allSatisfy { name in Self.concepts.contains { $0.formerNames.contains(name) } }, "\(names)")
        }
    }

    /// An answer names a thing as the path parameter does.
    @Test func answersNameThingsAsPathsDo() throws {
        for route in APIRoute.all where route.method == .get {
            guard case .parameter(let name)? = route.parts.last, name.hasSuffix("Id") else { continue }
            let schema = try #require(route.success.content.first?.schema)
            var components: [String: JSONValue] = [:]
            let data = try #require(schema.json(&components)["properties"]?["data"])
            guard case .string(let reference)? = data["$ref"],
                let answer = components[reference.split(separator: "/").last.map(String.init) ?? ""]
            else {
                Issue.record("\(route.name) answers \(data.text)")
                continue
            }
            #expect(answer["properties"]?[name] != nil && answer["properties"]?[name]?["deprecated"] == nil, "\(route.name): \(name)")
        }
    }

    /// Former names hold the same values.
    @Test func formerNamesHoldTheSame() async throws {
        try await TestServer.run({ $0.talk.always = true }) { server in
            let api = try await CheckedAPI(server)
            let publisher = try await RawClient.publishing(server.port, "cam1")
            let session = try await api.ok("GET", "sessions?role=publisher")["list"][0]
            let id = try session["sessionId"].int.orThrow()
            #expect(session["id"].int == id)
            #expect(try await api.ok("GET", "sessions/\(id)")["sessionId"].int == id)
            let stream = try await api.ok("GET", "streams/live/cam1")["stream"]["publisher"]
            #expect(stream["sessionId"].int == id && stream["session"].int == id)
            try await api.ok("POST", "rooms/cam1/join", #"{"userId":"ann"}"#)
            let joined = try await api.ok("GET", "rooms/cam1/events")["list"].list.last { $0["kind"].string == "member.join" }
            #expect(joined?["data"]["userId"].string == "ann" && joined?["data"]["user"].string == "ann")
            let ban = try await api.ok("POST", "rooms/cam1/talk/members/bob/kick", #"{"seconds":60}"#)["banned"][0]
            #expect(ban["userId"].string == "bob" && ban["forbiddenUntil"].string != nil)
            #expect(ban["until"].string == ban["forbiddenUntil"].string)
            await publisher.close()
        }
    }

    /// A 404 names the missing thing as the call's path parameter does.
    @Test func whatIsMissingIsNamedAsTheCallNamesIt() async throws {
        let values = [
            "roomId": "nowhere", "userId": "nobody", "sessionId": "999999", "taskId": "999999", "callbackId": "999999", "tokenId": "999999",
            "recordingId": "0123456789abcdef", "snapshotId": "0123456789abcdef", "app": "live", "name": "nothing",
        ]
        try await TestServer.run({ $0.talk.always = true }) { server in
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
                    nil, #"{"userId":"nobody","action":"release"}"#, #"{"action":"start"}"#, #"{"muted":true}"#, #"{"role":"app"}"#,
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
                named.isSuperset(of: ["roomId", "sessionId", "taskId", "callbackId", "tokenId", "recordingId", "snapshotId", "name"]),
                "\(named)")
        }
    }
}
