import Foundation

package struct TimedOut: Error, CustomStringConvertible {
    package let description: String

    package init(description: String) { self.description = description }
}

/// How many times longer tests wait for a state or a process than usual: a sanitizer makes everything several times as slow.
package enum Patience {
    package static let factor = ProcessInfo.processInfo.environment["EARSHOT_PATIENCE"].flatMap(Double.init) ?? 1
}

/// Polls until the condition holds. The default 60 s is no requirement: busy machines stand still for seconds.
package func eventually(_ what: String, within seconds: Double = 60, _ condition: () async throws -> Bool) async throws {
    let end = ContinuousClock.now + .seconds(seconds * Patience.factor)
    // Soon at first: in memory most states come within a millisecond.
    var pauseMs = 1
    while ContinuousClock.now < end {
        if try await condition() { return }
        try await Task.sleep(for: .milliseconds(pauseMs))
        pauseMs = min(20, pauseMs * 2)
    }
    throw TimedOut(description: "waited \(seconds * Patience.factor) s for \(what)")
}

extension Optional {
    package func orThrow() throws -> Wrapped {
        guard let self else { throw TimedOut(description: "a value was missing") }
        return self
    }
}
