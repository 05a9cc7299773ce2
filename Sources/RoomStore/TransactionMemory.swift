import Rooms

/// What a transaction has read or written, and nobody else can change until its end: so it need not ask again. At a far database each answer is a round
/// trip, and all nodes wait for the transaction's end. Used by the writer's thread.
final class TransactionMemory {
    struct Events {
        /// The number of the newest one.
        var last: Int64
        /// The same as the database has it.
        var stored: Int64
    }

    /// Once one was added.
    var events: Events?
    /// The webhook targets made by the API. Whoever changes them waits for this transaction's end.
    var webhooks: [StoredWebhook]?

    /// What was done since then is undone.
    func forget(since events: Events?) {
        self.events = events
        self.webhooks = nil
    }
}
