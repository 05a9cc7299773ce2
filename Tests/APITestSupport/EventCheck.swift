import EarshotServer
import Foundation
import Notifications
import PostgresTestSupport
import ServerTestSupport
import Support
import Testing

@testable import ControlAPI
@testable import HTTPAPI
@testable package import RoomRegistry
@testable package import Rooms
@testable import Store

/// Compares events with the forms in the API's document.
package enum EventCheck {
    /// How many of a store's newest events are compared.
    private static let newest: Int64 = 200

    private static let schemas = Result { SchemaCheck(document: try JSONParser.parse(OpenAPIDocument.bytes)) }

    /// Each violation, with the event's kind, the field, what was expected and what was found.
    package static func problems(_ event: RoomEvent) throws -> [String] {
        let json = try JSONParser.parse("{\(EventMessage.fields(of: event))}".utf8, deepest: JSONParser.deepestAnswer)
        return try self.schemas.get().problems(json, ["$ref": "#/components/schemas/Event"], at: event.kind.rawValue)
    }

    /// Records an issue for each of the newest events that is not as the document says. The store's server has ended.
    package static func checkNewest(in directory: String) throws {
        let database = try TestPostgres.location(of: directory)
        guard database != nil || FileManager.default.fileExists(atPath: SQLiteStore.path(in: directory)) else { return }
        let store: any RoomStore
        do {
            store =
                if let database { try PostgresStore(database, isNode: false) } else { try SQLiteStore(directory: directory) }
        } catch {
            // The test has damaged it.
            return
        }
        defer { _ = store.close() }
        try self.check(
            store.readNow { try $0.events(after: max(0, try $0.lastEventID() - self.newest), room: nil, limit: Int(self.newest)) })
    }

    /// The same for a server that still runs, on a folder that stays as it leaves it.
    package static func checkNewest(of rooms: RoomRegistry) async throws {
        let last: Int64
        do {
            last = try await rooms.lastEventID()
        } catch {
            return
        }
        try self.check(await rooms.events(after: max(0, last - self.newest), room: nil, limit: Int(self.newest)))
    }

    private static func check(_ events: [RoomEvent]) throws {
        for event in events {
            for problem in try self.problems(event) { Issue.record("Event \(event.id) does not fit its form: \(problem) in \(event.data)") }
        }
    }
}
