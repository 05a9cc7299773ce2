package import Media
package import Relay

/// A stream that the server makes from others and publishes itself. The relay fans it out like a client's. Any thread.
package final class DerivedStream: Sendable {
    package let stream: Relay.Stream
    private let token: StreamState.Token
    private let registry: StreamRegistry

    private init(_ stream: Relay.Stream, _ token: StreamState.Token, _ registry: StreamRegistry) {
        self.stream = stream
        self.token = token
        self.registry = registry
    }

    package var viewers: Int { self.stream.viewerCount }

    package func publish(_ frames: [Frame]) { RelayLoop.publish(frames, to: self.stream, token: self.token) }

    /// Passes frames to the stream's taps only, because they are too late for viewers.
    package func keep(_ frames: [Frame]) { RelayLoop.keep(frames, of: self.stream, token: self.token) }

    /// New viewers begin with the next keyframe.
    package func dropGOP() { RelayLoop.dropGOP(of: self.stream, token: self.token) }

    /// Ends the stream for its viewers. Call once.
    package func end() {
        let stream = self.stream
        let registry = self.registry
        stream.home.run { home in
            _ = home.evict(stream, endsViewers: true)
            registry.release(stream)
        }
    }

    /// Opens the stream on `loop`, unless viewers already wait for it on another one. Returns nil if somebody publishes it. `loop` may be
    /// any of the server's.
    package static func open(_ path: String, by maker: String, in registry: StreamRegistry, on loop: RelayLoop) async -> DerivedStream? {
        await withCheckedContinuation { done in
            loop.run { loop in
                let stream = registry.acquire(path, on: loop)
                stream.home.run { home in
                    let derived = Self.claim(stream, by: maker, in: registry, on: home)
                    done.resume(returning: derived)
                }
            }
        }
    }

    private static func claim(_ stream: Relay.Stream, by maker: String, in registry: StreamRegistry, on home: RelayLoop) -> DerivedStream? {
        var grace = GracePeriods()
        // It ends only when its maker ends it.
        grace.mediaIdleMs = .max / 2
        grace.dryMs = .max / 2
        grace.quietMs = .max / 2
        do throws(ClaimRefusal) {
            let token = try home.claim(
                stream, identity: PublisherIdentity(maker), takeover: .nobody, grace: grace, delegate: Nobody())
            return DerivedStream(stream, token, registry)
        } catch {
            registry.release(stream)
            return nil
        }
    }

    private final class Nobody: PublisherDelegate {
        func publishEnded(_ token: StreamState.Token, reason: PublishEndReason) {}
    }
}
