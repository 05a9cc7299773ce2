import Rooms

/// What a transaction has read or written, and nobody else can change until its end: so it need not ask again. At a far database each answer is a round
/// trip, and all nodes wait for the transaction's end. Used by the writer's thread.
final class TransactionMemory {
    /// The number of the newest event, once one was added.
    var lastEvent: Int64?
    /// The webhook targets made by the API. Whoever changes them waits for this transaction's end.
    var webhooks: [StoredWebhook]?

    /// What was done since the newest event had this number is undone.
    func forget(since lastEvent: Int64?) {
        self.lastEvent = lastEvent
        self.webhooks = nil
    }
}
