import Foundation
import HTTPTypes
import Rooms
import Support
import Testing

@testable import ControlAPI
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
    /// Ends of the names of schemas that may call their own number `id`. An event has no call of its own; its number is the feed's cursor.
    private static let ownIDs = ["Event", "Notice"]

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
            let isOwn = names.place.split(separator: " ").last.map { Self.ownIDs.contains(where: $0.hasSuffix) } ?? false
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
}
