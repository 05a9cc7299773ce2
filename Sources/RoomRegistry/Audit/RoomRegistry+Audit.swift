package import Rooms
import Store

extension RoomRegistry {
    /// Ends a call and stores its line, or only the result if the call's change has already stored the line. Any thread; does not wait.
    package nonisolated func ended(_ call: AuditedCall) {
        guard let (line, id) = call.end() else { return }
        if let id {
            guard line.result != AuditLine.ok else { return }
            self.submit(trail: 512) { try $0.store.setAudit(id, result: line.result, status: line.status) }
        } else {
            self.submit(trail: 1_024) { try $0.store.insert(line, at: $0.now) }
        }
    }

    /// The trail's lines, newest first.
    package nonisolated func audit(_ query: AuditQuery) async throws(RegistryError) -> [AuditEntry] {
        var query = query
        query.limit = min(max(1, query.limit), 10_000)
        return try await self.store.read { [query] in try $0.audit(query) }
    }

    /// The name of the token, valid or revoked, that has this secret; nil if there is none.
    package nonisolated func tokenName(secret: String) async throws(RegistryError) -> (id: Int64, name: String)? {
        let hash = TokenSecret.hash(secret)
        return try await self.store.read { try $0.tokenName(hash: hash) }
    }
}
