import Rooms

/// What another version of this program may have left in a store with the same schema.
extension StoreAccess {
    /// Kinds that this version knows. A later version may have stored others without another schema: they are kept, and left out of what is read.
    package static let isKnown = "kind IN (\(RoomEvent.Kind.allCases.map { "'\($0.rawValue)'" }.joined(separator: ", ")))"

    /// Gives up deliveries of events that this version does not know: they would hold up all that wait behind them. Returns a line for the log,
    /// if there were any.
    package func giveUpUnknownDeliveries() throws -> String? {
        let count = try self.giveUpUnknown()
        guard count > 0 else { return nil }
        return "\(count) webhook deliveries of events that this version does not know are given up; a later version can send them again"
    }

    private func giveUpUnknown() throws -> Int {
        let count = try self.change(
            """
            UPDATE webhook_deliveries SET state = 'failed', is_head = 0, last_error = 'this version of earshot does not know the event'
            WHERE state = 'pending' AND NOT \(Self.isKnown)
            """, [])
        guard count > 0 else { return 0 }
        try self.run(
            "UPDATE webhook_deliveries SET is_head = 1 WHERE id IN (SELECT min(id) FROM webhook_deliveries WHERE state = 'pending' GROUP BY url, format, lane)",
            [])
        return count
    }
}
