package import Foundation
import GRDB
package import RoomRegistry
package import Rooms
import TestSupport

/// A server of this process that a test calls, with ports or without.
package protocol RunningServer: Sendable {
    var rooms: RoomRegistry { get }
    var lines: LogLines { get }
    /// The token of its first start, with all rights.
    var token: String { get }
    var dataDirectory: String { get }
    /// "rtmp://127.0.0.1:PORT"
    var rtmp: String { get }
    /// "http://127.0.0.1:PORT"
    var http: String { get }

    /// One request to the HTTP port, with these headers and no others but those that every client sends. `path` begins with a slash.
    func exchange(_ method: String, _ path: String, _ body: Data?, _ headers: [String: String]) async throws -> HTTPAnswer
}

extension RunningServer {
    /// A request to any path. `body` is sent as JSON unless the headers say otherwise.
    package func request(
        _ method: String, _ path: String, body: String? = nil, token: String? = nil, headers: [String: String] = [:]
    ) async throws -> HTTPAnswer {
        var all: [String: String] = [:]
        if body != nil { all["Content-Type"] = "application/json" }
        if let token { all["Authorization"] = "Bearer \(token)" }
        return try await self.exchange(method, path, body.map { Data($0.utf8) }, all.merging(headers) { $1 })
    }

    /// An API call with the admin token, or another one ("" sends none). `body` is an object in JSON.
    package func call(
        _ method: String, _ path: String, _ body: String? = nil, token: String? = nil, headers: [String: String] = [:]
    ) async throws -> HTTPAnswer {
        let token = token ?? self.token
        return try await self.request(method, "/api/v1/\(path)", body: body, token: token.isEmpty ? nil : token, headers: headers)
    }

    /// `data` of an API answer.
    package func api(_ path: String) async throws -> JSON {
        try await self.call("GET", path).json()["data"]
    }

    /// Waits until the API's answer satisfies the condition; throws after the limit, with the last answer and the log's last lines.
    package func wait(
        _ path: String, within seconds: Double = 60, until condition: @Sendable (JSON) -> Bool
    ) async throws {
        var last = JSON(nil)
        do {
            try await eventually("\(path) to change", within: seconds) {
                last = try await self.api(path)
                return condition(last)
            }
        } catch let error as TimedOut {
            let log = self.lines.all.suffix(12).joined(separator: "\n")
            throw TimedOut(
                description: "\(error); the last answer: \("\(last.value ?? "none")".prefix(1_500)); the log: \(log.prefix(3_000))")
        }
    }

    /// Waits until the room is in this state.
    @discardableResult
    package func waitFor(_ id: String, _ state: RoomState, within seconds: Double = 60) async throws -> Room {
        var last: Room?
        do {
            try await eventually("\(id) to be \(state)", within: seconds) {
                do throws(RegistryError) {
                    last = try await self.rooms.room(id)
                } catch .noSuchRoom {
                    return false
                }
                return last?.state == state
            }
        } catch {
            throw TimedOut(description: "\(error); it is \(last.map { "\($0.state) (\($0.reason))" } ?? "not there")")
        }
        return try last.orThrow()
    }
}

/// Triggers that a test puts into the server's store.
package enum StoreTrigger {
    /// Prevents the server from storing any answer to a call with an Idempotency-Key.
    package static let noAnswers = "CREATE TRIGGER no_answers BEFORE INSERT ON answers BEGIN SELECT RAISE(ABORT, 'no'); END"
}

extension RunningServer {
    /// Runs a statement on the server's SQLite file, by a connection of its own.
    package func changeStore(_ sql: String) async throws {
        var configuration = Configuration()
        configuration.busyMode = .timeout(20)
        let file = try DatabaseQueue(path: "\(self.dataDirectory)/earshot.db", configuration: configuration)
        try await file.write { try $0.execute(sql: sql) }
        try file.close()
    }
}
