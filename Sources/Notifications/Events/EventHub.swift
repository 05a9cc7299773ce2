import HTTPServer
import NIOCore
package import Rooms
import Synchronization

/// Sends events to the subscribers of the event feed. Any thread.
///
/// An event is encoded once. Each event loop with subscribers gets one task per batch and keeps the newest events in an ``EventRing``. A subscriber
/// that falls behind the ring reads the store instead, so memory does not depend on how slow it is, and no event is lost.
package final class EventHub: Sendable {
    package static let subscriberLimit = 1_000

    private struct State {
        var feeds: [ObjectIdentifier: LoopFeed] = [:]
        var subscribers = 0
        var listeners = 0
    }

    private let state = Mutex(State())

    package init() {}

    /// Delivers events of one commit or several, in order, after they were stored. Does not wait. Calls must not overlap.
    package func publish(_ events: [RoomEvent]) {
        let feeds = self.state.withLock { Array($0.feeds.values) }
        guard !feeds.isEmpty, !events.isEmpty else { return }
        let entries = events.map {
            EventRing.Entry(
                id: $0.id, room: $0.roomID, kind: $0.kind, app: $0.app, subject: $0.subject,
                frame: WebSocketWriter.text(EventMessage.event($0)))
        }
        for feed in feeds { feed.eventLoop.execute { feed.deliver(entries) } }
    }

    /// Sends a transient message to the present subscribers; those that are behind miss it. Does not wait.
    package func notify(_ text: String, of room: RoomID) {
        let feeds = self.state.withLock { Array($0.feeds.values) }
        guard !feeds.isEmpty else { return }
        let frame = WebSocketWriter.text(text)
        for feed in feeds { feed.eventLoop.execute { feed.notify(frame, of: room) } }
    }

    /// Places taken; a place is taken before the position from which its subscriber reads.
    package var subscribers: Int { self.state.withLock { $0.subscribers } }

    /// Subscribers that get every event from now on.
    package var listeners: Int { self.state.withLock { $0.listeners } }

    /// Reserves a subscriber's place for as long as it exists.
    package final class Place: Sendable {
        private let hub: EventHub
        fileprivate init(_ hub: EventHub) { self.hub = hub }
        deinit { self.hub.state.withLock { $0.subscribers -= 1 } }
    }

    /// Returns nil if all places are taken.
    package func acquirePlace() -> Place? {
        self.state.withLock { state in
            guard state.subscribers < Self.subscriberLimit else { return nil }
            state.subscribers += 1
            return Place(self)
        }
    }

    /// Adds the subscriber to this loop's feed and returns the feed. On the loop.
    func join(_ subscriber: any EventSubscriber, on eventLoop: any EventLoop) -> LoopFeed {
        let feed = self.state.withLock { state in
            let feed = state.feeds[ObjectIdentifier(eventLoop)] ?? LoopFeed(eventLoop)
            state.feeds[ObjectIdentifier(eventLoop)] = feed
            state.listeners += 1
            return feed
        }
        feed.add(subscriber)
        return feed
    }

    /// On the loop.
    func leave(_ subscriber: any EventSubscriber, _ feed: LoopFeed) {
        let isLast = feed.remove(subscriber)
        self.state.withLock { state in
            state.listeners -= 1
            // This loop gets no more events. The next subscriber joins a new feed with a new ring.
            if isLast, state.feeds[ObjectIdentifier(feed.eventLoop)] === feed {
                state.feeds[ObjectIdentifier(feed.eventLoop)] = nil
            }
        }
    }
}

/// Receives a feed's events. Loop-bound.
protocol EventSubscriber: AnyObject {
    /// Sends the events that are new in the ring.
    func pump()
    /// Writes a transient message now or drops it.
    func notify(_ frame: ByteBuffer, of room: RoomID)
}

/// One loop's subscribers and their ring.
///
/// `@unchecked Sendable`: its `var`s are touched on the event loop only.
final class LoopFeed: @unchecked Sendable {
    let eventLoop: any EventLoop
    private(set) var ring = EventRing()
    private var subscribers: [ObjectIdentifier: any EventSubscriber] = [:]

    init(_ eventLoop: any EventLoop) { self.eventLoop = eventLoop }

    func add(_ subscriber: any EventSubscriber) { self.subscribers[ObjectIdentifier(subscriber)] = subscriber }

    /// Returns true if that was the last subscriber.
    func remove(_ subscriber: any EventSubscriber) -> Bool {
        self.subscribers[ObjectIdentifier(subscriber)] = nil
        return self.subscribers.isEmpty
    }

    func notify(_ frame: ByteBuffer, of room: RoomID) {
        for subscriber in Array(self.subscribers.values) { subscriber.notify(frame, of: room) }
    }

    func deliver(_ entries: [EventRing.Entry]) {
        for entry in entries { self.ring.append(entry) }
        // Subscribers may leave during this loop.
        for subscriber in Array(self.subscribers.values) { subscriber.pump() }
    }
}
