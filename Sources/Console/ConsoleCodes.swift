import Support
import Synchronization

/// One-time codes that log a browser on this machine in without a token. The URL that the server prints at its start ends with such a code. Kept in
/// memory: a restart invalidates them. Any thread.
package final class ConsoleCodes: Sendable {
    package static let lifetimeMs: Int64 = 300_000
    /// Most unused codes of one token; past it that token's oldest is dropped.
    package static let limitPerToken = 10
    /// Most unused codes in all; past it the oldest code of the token with the most is dropped.
    package static let limit = 300

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

    /// Makes a code that represents the token. Secret. A token that makes many takes the place of its own codes, not of others'.
    package func issue(for tokenID: Int64) -> String {
        let now = self.steadyMs()
        let code = Code(text: SecretText.random(), tokenID: tokenID, expiresAt: now + Self.lifetimeMs)
        self.codes.withLock { codes in
            codes.removeAll { $0.expiresAt <= now }
            if let crowded = Self.crowded(codes, tokenID), let oldest = codes.firstIndex(where: { $0.tokenID == crowded }) {
                codes.remove(at: oldest)
            }
            codes.append(code)
        }
        return code.text
    }

    /// The token that has to give up a code for one of `tokenID`; nil when there is room.
    private static func crowded(_ codes: [Code], _ tokenID: Int64) -> Int64? {
        if codes.count(where: { $0.tokenID == tokenID }) >= self.limitPerToken { return tokenID }
        guard codes.count >= self.limit else { return nil }
        return codes.reduce(into: [Int64: Int]()) { $0[$1.tokenID, default: 0] += 1 }.max { $0.value < $1.value }?.key
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
