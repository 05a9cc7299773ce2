import Support
import Synchronization

/// One-time codes that log a browser on this machine in without a token. The URL that the server prints at its start ends with such a code. Kept in
/// memory: a restart invalidates them. Any thread.
package final class ConsoleCodes: Sendable {
    package static let lifetimeMs: Int64 = 300_000
    /// Most unused codes; the oldest is dropped first.
    package static let limit = 100

    private struct Code {
        let text: String
        let tokenID: Int64
        /// Steady clock.
        let expiresAt: Int64
    }

    private let steadyMs: @Sendable () -> Int64
    private let codes = Mutex<[Code]>([])

    package convenience init() { self.init(steadyMs: { LoopSweeper.nowMs }) }

    package init(steadyMs: @escaping @Sendable () -> Int64) { self.steadyMs = steadyMs }

    /// Makes a code that represents the token. Secret.
    package func issue(for tokenID: Int64) -> String {
        let code = Code(text: SecretText.random(), tokenID: tokenID, expiresAt: self.steadyMs() + Self.lifetimeMs)
        self.codes.withLock { codes in
            if codes.count >= Self.limit { codes.removeFirst() }
            codes.append(code)
        }
        return code.text
    }

    /// Uses the code up. Nil if it is unknown, used or expired.
    package func redeem(_ text: String) -> Int64? {
        let now = self.steadyMs()
        return self.codes.withLock { codes in
            codes.removeAll { $0.expiresAt <= now }
            guard let index = codes.firstIndex(where: { SecretText.isEqual(Array($0.text.utf8), Array(text.utf8)) }) else { return nil }
            return codes.remove(at: index).tokenID
        }
    }
}
