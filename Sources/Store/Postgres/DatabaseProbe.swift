/// Looks at a database from outside, for the doctor. Changes nothing.
package enum DatabaseProbe {
    package struct Facts: Sendable, Equatable {
        /// "15.18".
        package let version: String
        package let isEncrypted: Bool
        /// "on", "off", "local", "remote_write" or "remote_apply".
        package let synchronousCommit: String
        /// The database's clock minus this machine's. Milliseconds.
        package let aheadMs: Int64
        /// From a question to its answer. Milliseconds.
        package let roundTripMs: Double
        package let location: String
    }

    /// Connects. `nowMs`: this machine's clock. Throws ``StoreError``. Blocks.
    package static func probe(_ location: PostgresLocation, nowMs: () -> Int64) throws(StoreError) -> Facts {
        let connection = PostgresConnection(.init(url: location.url, prepares: location.prepares, name: "earshot doctor"))
        defer { connection.close() }
        do {
            try connection.open()
            try PostgresStore.checkVersion(connection.serverVersion, location)
            let store = StoreAccess(connection)
            let settings = try store.first("SELECT current_setting('server_version'), current_setting('synchronous_commit')") {
                (row: inout RowReader) -> (String, String) in (row.next(), row.next())
            }
            let (before, start) = (nowMs(), ContinuousClock.now)
            let now = try store.number("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint") ?? before
            let roundTripMs = (ContinuousClock.now - start) / .milliseconds(1)
            return Facts(
                version: settings.flatMap { $0.0.split(separator: " ").first.map(String.init) } ?? "?", isEncrypted: connection.isEncrypted,
                synchronousCommit: settings?.1 ?? "?", aheadMs: now - before - Int64(roundTripMs / 2), roundTripMs: roundTripMs,
                location: location.description)
        } catch {
            throw PostgresStore.explain(error, location)
        }
    }
}
