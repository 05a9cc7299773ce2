import Foundation
import Synchronization
@testable package import Store

/// The PostgreSQL that tests run on with EARSHOT_STORE=postgres. EARSHOT_TEST_POSTGRES is its address, whose role may create
/// databases.
package enum TestPostgres {
    package static let server: String? = {
        let environment = ProcessInfo.processInfo.environment
        guard environment["EARSHOT_STORE"] == "postgres" else { return nil }
        guard let url = environment["EARSHOT_TEST_POSTGRES"] else {
            preconditionFailure("EARSHOT_STORE=postgres needs EARSHOT_TEST_POSTGRES: run it in scripts/postgres.sh run")
        }
        return url
    }()
    package static var isOn: Bool { self.server != nil }

    private static let file = "/postgres-url"
    private static let run = String(UUID().uuidString.filter { $0 != "-" }.prefix(12)).lowercased()

    /// Migrated once; each test's database is a copy.
    private static let template: Result<String, any Error> = Result {
        let name = "earshot_template_\(run)"
        try administer("CREATE DATABASE \(name)")
        try PostgresStore(PostgresLocation(url: url(of: name)), isNode: false).close()
        return name
    }
    private static let lock = Mutex(())

    /// The database that belongs to this folder; made the first time. Nil where the tests run on SQLite.
    package static func location(of folder: String) throws -> PostgresLocation? {
        guard self.isOn else { return nil }
        let path = folder + self.file
        if let known = try? String(contentsOfFile: path, encoding: .utf8) { return PostgresLocation(url: known, readers: 2) }
        let name = "earshot_\(UUID().uuidString.filter { $0 != "-" }.lowercased())"
        try self.lock.withLock { _ in try self.administer("CREATE DATABASE \(name) TEMPLATE \(try self.template.get())") }
        try self.url(of: name).write(toFile: path, atomically: true, encoding: .utf8)
        return PostgresLocation(url: self.url(of: name), readers: 2)
    }

    /// Where a server with this folder keeps its rooms.
    package static func store(in folder: String) throws -> StoreLocation {
        try self.location(of: folder).map(StoreLocation.postgres) ?? .folder(folder)
    }

    package static func remove(_ folder: String) {
        guard let url = try? String(contentsOfFile: folder + self.file, encoding: .utf8), let name = url.split(separator: "/").last else {
            return
        }
        try? self.administer("DROP DATABASE IF EXISTS \(name) WITH (FORCE)")
    }

    package static func url(of database: String) -> String {
        let server = self.server ?? ""
        return server[..<(server.lastIndex(of: "/") ?? server.endIndex)] + "/" + database
    }

    package static func administer(_ sql: String) throws {
        let connection = PostgresConnection(.init(url: self.server ?? ""))
        try connection.open()
        try connection.run("SET statement_timeout = 0")
        try connection.flush()
        try connection.run(sql)
        try connection.flush()
        connection.close()
    }
}
