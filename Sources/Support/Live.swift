import Synchronization

/// A value that may be replaced while others read it; each read gets the present value. Any thread; locked only briefly.
///
/// For values that change a few times a day, such as settings. Read it per connection, call or timer, never per frame.
@dynamicMemberLookup
package final class Live<Value: Sendable>: Sendable {
    private let state: Mutex<Value>

    package init(_ value: Value) { self.state = Mutex(value) }

    package var current: Value { self.state.withLock { $0 } }

    /// One part of the value, without a copy of the rest.
    package subscript<Part: Sendable>(dynamicMember path: KeyPath<Value, Part>) -> Part { self.state.withLock { $0[keyPath: path] } }

    package func set(_ value: Value) { self.state.withLock { $0 = value } }

    package func update(_ change: (inout Value) -> Void) { self.state.withLock { change(&$0) } }
}
