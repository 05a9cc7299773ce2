import Foundation
import PostgresTestSupport
import TestSupport
import Testing

@testable import RoomRegistry
@testable import Store
@testable import Rooms

/// Addresses of databases as they are shown: no password, however it was written.
@Suite struct PostgresAddressTests {
    @Test(arguments: [
        ("postgresql://u:geheim@db.example.com:5433/earshot?sslmode=verify-full", "postgresql://db.example.com:5433/earshot"),
        ("postgres://u:geheim@db.example.com/earshot", "postgresql://db.example.com/earshot"),
        ("postgresql://u:ge%2Fheim@a:1,b:2/earshot?target_session_attrs=read-write", "postgresql://a:1,b:2/earshot"),
        ("host=db.example.com port=5433 dbname=earshot user=u password='geheim host=x'", "postgresql://db.example.com:5433/earshot"),
        ("postgresql:///earshot?host=/run/postgresql&password=geheim", "postgresql://%2Frun%2Fpostgresql/earshot"),
        ("postgresql://u:ge@heim@db/earshot", "database.url"), ("postgresql://u:ge/heim@db/earshot", "database.url"),
        ("postgresql://u:ge?heim@db/earshot", "postgresql://db/earshot"), ("postgresql://u:ge%heim@db/earshot", "database.url"),
        ("host=db password=ge heim", "database.url"), ("postgresql://u:geheim@db/earshot?geheim=1", "database.url"),
    ])
    func nothingSecretIsShown(_ url: String, _ shown: String) {
        let location = PostgresLocation(url: url)
        #expect("\(location)" == shown)
        guard shown == "database.url" else { return }
        // libpq would quote what it does not understand.
        let error = #expect(throws: StoreError.self) { try PostgresStore(location, isNode: false) }
        #expect(error.map { "\($0)".contains("heim") } == false && error?.advice.contains("percent-encoded") == true)
    }

    @Test func anOldServerIsRefused() {
        let location = PostgresLocation(url: "postgresql://db/earshot")
        #expect(throws: Never.self) { try PostgresStore.checkVersion(150_000, location) }
        let error = #expect(throws: StoreError.self) { try PostgresStore.checkVersion(140_011, location) }
        #expect(error.map { "\($0)" } == "postgresql://db/earshot: is PostgreSQL 14; use PostgreSQL 15 or newer")
    }

    @Test(arguments: [
        (nil, "connection to server at \"h\", port 1 failed: FATAL:  sorry, too many clients already", "max_connections"),
        (nil, "FATAL:  too many connections for role \"earshot\"", "max_connections"),
        (nil, "FATAL:  remaining connection slots are reserved for non-replication superuser connections", "max_connections"),
        (nil, "FATAL:  password authentication failed for user \"u\"", "user and password"),
        (nil, "FATAL:  database \"x\" does not exist", "CREATE DATABASE"),
        (nil, "FATAL:  role \"x\" does not exist", "user and password"),
        (nil, "server does not support SSL, but SSL was required", "sslmode"),
        (nil, "root certificate file \"/root/.postgresql/root.crt\" does not exist", "sslrootcert"),
        (nil, "timeout expired", "host and port"),
        (nil, "no answer for 10 s; the connection is given up", "whether PostgreSQL is stuck"),
        ("57014", "canceling statement due to statement timeout", "keeps the database busy"),
        ("57P03", "the database system is starting up", "accepts connections"),
        ("53100", "could not extend file", "disk is full"), ("42501", "permission denied for schema public", "rights"),
        ("25006", "cannot execute INSERT in a read-only transaction", "target_session_attrs=read-write"),
    ])
    func everyFailureHasItsAdvice(_ state: String?, _ message: String, _ advice: String) {
        let failure = PostgresFailure(state: state, message)
        #expect(failure.advice?.contains(advice) == true)
        // Also in the log of a server that runs.
        #expect(RegistryError(of: failure).storeProblem.contains(advice))
    }
}

/// A store on PostgreSQL that cannot be used, or is in use.
@Suite(.enabled(if: TestPostgres.isOn, "on PostgreSQL")) struct PostgresStoreTests {
    /// A database of its own.
    private static func withLocation(_ body: (PostgresLocation) async throws -> Void) async throws {
        let folder = NSTemporaryDirectory() + "earshot-postgres-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer {
            TestPostgres.remove(folder)
            try? FileManager.default.removeItem(atPath: folder)
        }
        try await body(try #require(try TestPostgres.location(of: folder)))
    }

    private static func connect(_ location: PostgresLocation) throws -> PostgresConnection {
        let connection = PostgresConnection(.init(url: location.url))
        try connection.open()
        return connection
    }

    private static func problem(_ location: PostgresLocation, isNode: Bool = false) -> String {
        do {
            try PostgresStore(location, isNode: isNode).close()
            return "none"
        } catch {
            return "\(error)"
        }
    }

    @Test func aDatabaseThatCannotBeReachedIsExplained() async throws {
        try await Self.withLocation { location in
            let name = try #require(location.url.split(separator: "/").last)
            func shown(_ url: String) -> String {
                var other = location
                other.url = url
                return Self.problem(other)
            }
            let port = shown(location.url.replacing(/:\d+\//, with: ":1/"))
            #expect(port.contains("refused") && port.hasSuffix("check host and port in database.url, and that PostgreSQL runs there"))
            let host = shown(location.url.replacing(/@[^\/]*\//, with: "@no-such-host.invalid/"))
            #expect(host.contains("no-such-host.invalid") && host.contains("check host and port"), "\(host)")
            let password = shown(location.url.replacing(/:[^:\/]*@/, with: ":geheim@"))
            #expect(password == "none" || (password.contains("check user and password") && !password.contains("geheim")), "\(password)")
            let none = shown(location.url.replacing(name, with: "earshot_none"))
            #expect(none.contains("does not exist; create it: CREATE DATABASE"), "\(none)")
            let certificate = shown(location.url + "?sslmode=verify-full&sslrootcert=/etc/ssl/certs/ca-certificates.crt")
            #expect(certificate.contains("check sslmode and sslrootcert"), "\(certificate)")
            for problem in [port, host, password, none, certificate] {
                #expect(!problem.contains("\n"))
            }
        }
    }

    @Test func whatIsNotOursStays() async throws {
        try await Self.withLocation { location in
            let connection = try Self.connect(location)
            try connection.run("INSERT INTO earshot_schema (name) VALUES ('99 future')")
            try connection.flush()
            let newer = Self.problem(location)
            #expect(newer.contains("newer version of earshot; run that version"))
            try connection.runDefinitions("DROP SCHEMA public CASCADE;\nCREATE SCHEMA public;\nCREATE TABLE theirs (x INT);")
            let foreign = Self.problem(location)
            #expect(foreign.contains("holds another program's tables") && foreign.contains("it was not changed"))
            #expect(try StoreAccess(connection).number("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == 1)
            try connection.runDefinitions(
                "DROP TABLE theirs;\nCREATE TABLE earshot_schema (name TEXT);\nINSERT INTO earshot_schema VALUES ('1 rooms');")
            let unreleased = Self.problem(location)
            #expect(unreleased.contains("before the first release") && unreleased.contains("name an empty database"))
            connection.close()
        }
    }

    /// A later version's step, which waits for servers of this version unless they do not notice it.
    @Test func aSecondStep() async throws {
        try await Self.withLocation { location in
            let options = PostgresConnection.Options(url: location.url, prepares: location.prepares, name: "test")
            let connection = try Self.connect(location)
            let store = StoreAccess(connection)
            let first = StoreSchema.steps
            let noticed = StoreSchema.Step(sqlite: "", postgres: "ALTER TABLE rooms ADD COLUMN colour TEXT;")
            let unnoticed = StoreSchema.Step(
                sqlite: "",
                postgres: """
                    CREATE FUNCTION earshot_more(n BIGINT) RETURNS BIGINT LANGUAGE plpgsql AS $$
                    BEGIN
                        RETURN n + 1;
                    END
                    $$;
                    CREATE INDEX rooms_colour ON rooms(colour);
                    """, isUnnoticed: true)
            // A server on another machine.
            try connection.run(
                """
                INSERT INTO nodes (name, process, version, started_at, expires_at)
                VALUES ('b', 'elsewhere 1 1', '0', now(), clock_timestamp() + make_interval(secs => 60))
                """)
            try connection.flush()
            let refused = #expect(throws: PostgresSchema.InUse.self) { try PostgresSchema.migrate(options, first + [noticed]) }
            #expect(refused?.server == "b")
            #expect(try PostgresSchema.state(store) == .version(1))
            try connection.run("UPDATE nodes SET expires_at = now() - make_interval(secs => 1)")
            try connection.flush()
            try PostgresSchema.migrate(options, first + [noticed])
            try connection.run("UPDATE nodes SET expires_at = clock_timestamp() + make_interval(secs => 60)")
            try connection.flush()
            try PostgresSchema.migrate(options, first + [noticed, unnoticed])
            try PostgresSchema.migrate(options, first + [noticed, unnoticed])
            #expect(try PostgresSchema.state(store) == .newer)
            #expect(try PostgresSchema.state(store, known: 3) == .version(3))
            #expect(try store.number("SELECT earshot_more(2)") == 3)
            #expect(Self.problem(location).contains("newer version of earshot"))
            connection.close()
        }
    }

    @Test(arguments: ["other", "same"]) func oneServerAtATime(_ name: String) async throws {
        try await Self.withLocation { location in
            let first = try PostgresStore(location, isNode: true)
            let connection = try Self.connect(location)
            // As if it were on another machine.
            try connection.run("UPDATE nodes SET process = 'elsewhere 1 1', expires_at = clock_timestamp() + make_interval(secs => 10)")
            try connection.flush()
            var second = location
            if name == "other" { second.node = "second" }
            let problem = Self.problem(second, isNode: true)
            #expect(problem.contains("is in use by the running server earshot; stop that one"), "\(problem)")
            // Once it has gone without a word, its lease ends.
            first.close()
            try connection.run("UPDATE nodes SET expires_at = clock_timestamp() + make_interval(secs => 1)")
            try connection.flush()
            connection.close()
            #expect(Self.problem(second, isNode: true) == "none")
        }
    }

    @Test func theCommandLineWorksBesideTheServer() async throws {
        try await Self.withLocation { location in
            let server = try PostgresStore(location, isNode: true)
            let tokens = try TokenStore(.postgres(location))
            let (token, _) = try tokens.create(name: "beside", role: .backend)
            #expect(try server.readNow { try $0.tokens() } == [token])
            tokens.close()
            server.close()
        }
    }

    @Test func aLongStatementEndsInFiveSeconds() async throws {
        try await Self.withLocation { location in
            let store = try PostgresStore(location, isNode: true)
            let begin = StallMeter.machine.start()
            let failure = #expect(throws: PostgresFailure.self) {
                try store.transaction { _ = try $0.first("SELECT pg_sleep(60)") { (row: inout RowReader) -> String? in row.optional() } }
            }
            let took = await StallMeter.machine.passed(since: begin)
            #expect(failure?.state == "57014" && took < .seconds(10))
            // The connection is still of use.
            #expect(try store.transaction { try $0.number("SELECT 1") } == 1)
            store.close()
        }
    }

    @Test func aLimitOfConnectionsIsNamed() async throws {
        try await Self.withLocation { location in
            let first = try Self.connect(location)
            // No limit holds for a superuser.
            guard try StoreAccess(first).number("SELECT rolsuper::int FROM pg_roles WHERE rolname = current_user") == 0 else { return }
            let name = try #require(location.url.split(separator: "/").last)
            try TestPostgres.administer("ALTER DATABASE \(name) CONNECTION LIMIT 1")
            let problem = Self.problem(location)
            #expect(problem.contains("too many connections") && problem.contains("max_connections"), "\(problem)")
            first.close()
        }
    }

    @Test func aStrangersPlaceInTheDoctor() async throws {
        try await Self.withLocation { location in
            let facts = try DatabaseProbe.probe(location) { Int64(Date().timeIntervalSince1970 * 1_000) }
            #expect(facts.version.contains(".") && !facts.isEncrypted && abs(facts.aheadMs) < 60_000 && facts.location == "\(location)")
        }
    }
}
