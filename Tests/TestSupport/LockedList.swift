import Foundation

/// A list that any thread may append to.
package final class LockedList<Element: Sendable>: @unchecked Sendable {
    // All access is under the lock.
    private let lock = NSLock()
    private var elements: [Element] = []

    package init() {}

    package var all: [Element] { self.lock.withLock { self.elements } }
    package func append(_ element: Element) { self.lock.withLock { self.elements.append(element) } }
}
