import EarshotServer
import Foundation
import HTTPTypes
import Rooms
import Support
import Testing

@testable import ControlAPI
@testable import HTTPAPI
@testable import ServerConfiguration

/// Each thing has one name, in the API's whole document and in all error messages.
@Suite struct APIConceptTests {
    /// Each thing's name, and names that it does not have.
    private static let concepts: [(name: String, others: Set<String>)] = [
        ("forbiddenUntil", ["until", "resumeTime", "resumeAt", "bannedUntil", "forbidUntil"]), ("roomId", ["room", "roomID", "id"]),
        ("sessionId", ["session", "sessionID", "connection", "connectionId", "id"]), ("userId", ["user", "uid", "userID"]),
        ("deliveryId", ["callback", "notice", "noticeId", "id"]), ("targetId", []),
        ("recordingId", ["recording", "recordId", "id"]),
        ("linkId", ["link", "id"]), ("taskId", ["task"]), ("tokenId", ["id"]), ("snapshotId", ["snapshot", "pictureId", "id"]),
        ("deviceUid", ["device", "deviceId", "uid"]), ("isPublic", ["public"]),
    ]
    /// Ends of the names of schemas that may call their own number `id`. An event has no call of its own; its number is the feed's cursor.
    private static let ownIDs = ["Event", "WebhookEvent"]

    private struct Names {
        /// "Room", "GET /rooms query".
        let location: String
        var all: Set<String> = []
    }

    /// Collects every object of the document, and each call's parameters by location.
    private static func collect(_ value: JSONValue, _ path: [String], _ found: inout [Names]) {
        switch value {
        case .object(let members):
            if case .object(let properties)? = value["properties"], value["type"] == "object" {
                var names = Names(location: path.joined(separator: " "))
                for property in properties { names.all.insert(property.name) }
                found.append(names)
            }
            if case .array(let parameters)? = value["parameters"] {
                for location in ["path", "query"] {
                    var names = Names(location: (path + [location]).joined(separator: " "))
                    for parameter in parameters where parameter["in"] == .string(location) {
                        if case .string(let name)? = parameter["name"] { names.all.insert(name) }
                    }
                    found.append(names)
                }
            }
            for member in members { Self.collect(member.value, path + [member.name], &found) }
        case .array(let values): for value in values { Self.collect(value, path, &found) }
        default: break
        }
    }

    @Test func everythingIsCalledByItsOneName() throws {
        let document = try JSONParser.parse(OpenAPIDocument.bytes)
        var found: [Names] = []
        Self.collect(document, [], &found)
        #expect(found.count > 100, "\(found.count)")
        for concept in Self.concepts {
            #expect(found.contains { $0.all.contains(concept.name) }, "\(concept.name) is nowhere")
        }
        for names in found {
            // The path's last component is the schema's own name.
            let isOwn = names.location.split(separator: " ").last.map { Self.ownIDs.contains(where: $0.hasSuffix) } ?? false
            for name in names.all where !(isOwn && name == "id") {
                #expect(!Self.concepts.contains { $0.others.contains(name) }, "\(name) in \(names.location)")
            }
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
            #expect(answer["properties"]?[name] != nil, "\(route.name): \(name)")
        }
    }
}
