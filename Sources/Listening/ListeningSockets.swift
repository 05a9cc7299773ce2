import LibC
package import Logging
package import NIOCore
package import NIOPosix
package import Support
import Synchronization

/// The server's listeners. Takes over inherited sockets, and keeps the listeners open for the program that replaces this one: connections made
/// meanwhile wait in the kernel instead of being refused. Any thread.
package final class ListeningSockets: Sendable {
    private struct State {
        var inherited: InheritedSockets
        var listeners: [(scheme: String, channel: any Channel)] = []
        /// Ports of UDP, whose owner closes them: what they serve goes on while no connection is accepted any more.
        var ports: [(scheme: String, channel: any Channel)] = []
    }

    private let state: Mutex<State>
    /// Those of the connections.
    private let loops: any EventLoopGroup
    private let log: Logger

    /// `loops`: those of the connections that the listeners accept.
    package init(_ inherited: InheritedSockets = .none, loops: any EventLoopGroup, log: Logger) {
        self.loops = loops
        self.state = Mutex(State(inherited: inherited))
        self.log = log
        for problem in inherited.problems { log.warning("A socket that was passed on is not used", metadata: ["problem": "\(problem)"]) }
    }

    /// Listens with the inherited socket of this address, or with a new one. Throws ``ListenError``.
    package func listen(_ scheme: String, on address: HostPort, _ bootstrap: ServerBootstrap) async throws -> any Channel {
        let bootstrap = bootstrap.serverChannelOption(.backlog, value: Self.backlog)
        let given = self.inherited(scheme, address, isDatagram: false)
        let channel: any Channel
        do {
            if let given {
                channel = try await bootstrap.withBoundSocket(given.descriptor).get()
                // NIO shortens the backlog to 128.
                _ = LibC.listen(given.descriptor, Self.backlog)
            } else {
                channel = try await bootstrap.serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                    .bind(host: address.host, port: address.port).get()
            }
        } catch {
            throw ListenError(scheme: scheme, address: address, cause: error)
        }
        self.state.withLock { $0.listeners.append((scheme, channel)) }
        return channel
    }

    /// Opens a port of UDP: the inherited one of this address, or a new one. Throws ``ListenError``.
    package func open(_ scheme: String, at address: HostPort, _ bootstrap: DatagramBootstrap) async throws -> any Channel {
        let given = self.inherited(scheme, address, isDatagram: true)
        let channel: any Channel
        do {
            if let given {
                channel = try await bootstrap.withBoundSocket(given.descriptor).get()
            } else {
                channel = try await bootstrap.bind(host: address.host, port: address.port).get()
            }
        } catch {
            throw ListenError(scheme: scheme, address: address, cause: error)
        }
        self.state.withLock { $0.ports.append((scheme, channel)) }
        return channel
    }

    /// The inherited socket of this address; those that stand in the way of a new one are closed.
    private func inherited(_ scheme: String, _ address: HostPort, isDatagram: Bool) -> InheritedSockets.Socket? {
        let (given, others) = self.state.withLock { state in
            let given = state.inherited.remove(scheme, address, isDatagram: isDatagram)
            return (given, given == nil ? state.inherited.removeOthers(of: address.port, isDatagram: isDatagram) : [])
        }
        self.close(others)
        return given
    }

    /// Throws if this program does not listen on the address and could not: a bind tells, and is undone. Blocks.
    package func check(_ scheme: String, on address: HostPort) throws(ListenError) {
        let isOurs = self.state.withLock { state in
            state.listeners.contains { listener in
                guard let local = listener.channel.localAddress, let host = local.ipAddress, let port = local.port else { return false }
                return HostPort(host: host, port: port).clashes(with: address)
            }
        }
        guard !isOurs, address.port != 0 else { return }
        do {
            let probe = ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            try probe.bind(host: address.host, port: address.port).wait().close().wait()
        } catch {
            throw ListenError(scheme: scheme, address: address, cause: error)
        }
    }

    /// Closes inherited sockets that no setting names, because their clients would never be accepted. Call when all listeners are open.
    package func closeOthers() {
        let others = self.state.withLock { state in
            defer { state.inherited = .none }
            return state.inherited.sockets
        }
        self.close(others)
    }

    private func close(_ others: [InheritedSockets.Socket]) {
        for socket in others {
            self.log.warning(
                "A socket that was passed on is closed: no setting names its address",
                metadata: [
                    "address": "\(socket.address)",
                    "expected": "the address of rtmp.listen, rtmps.listen, http.listen, https.listen or webrtc.listen",
                ])
            LibC.close(socket.descriptor)
        }
    }

    /// Copies of the descriptors of listeners and ports, which stay open when these close. Throws IOError.
    package func kept() async throws -> [(scheme: String, descriptor: CInt)] {
        var kept: [(scheme: String, descriptor: CInt)] = []
        for (scheme, channel) in self.state.withLock({ $0.listeners + $0.ports }) {
            do {
                let copy = try await channel.eventLoop.submit {
                    try channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { descriptor in
                        let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
                        guard copy >= 0 else { throw IOError(errnoCode: errno, reason: "dup") }
                        return copy
                    }
                }.get()
                if let copy { kept.append((scheme, copy)) }
            } catch {
                for (_, descriptor) in kept { LibC.close(descriptor) }
                throw error
            }
        }
        return kept
    }

    /// Stops accepting. New connections wait in the kernel's backlog if ``kept()`` holds copies of the descriptors; otherwise they are refused.
    package func close() async { for (_, channel) in self.state.withLock({ $0.listeners }) { await self.close(channel) } }

    /// Closes a listener; does nothing if it is closed. All connections that it has accepted are then set up on their loops.
    package func close(_ listener: any Channel) async {
        self.state.withLock { state in state.listeners.removeAll { $0.channel === listener } }
        listener.pipeline.fireUserInboundEventTriggered(AcceptGate.Stop())
        await Self.pass(listener.eventLoop)
        try? await listener.close()
        for loop in self.loops.makeIterator() { await Self.pass(loop) }
    }

    /// Waits until the loop has done what it was given before.
    private static func pass(_ loop: any EventLoop) async { try? await loop.submit {}.get() }

    /// Connections that may wait to be accepted.
    private static let backlog: CInt = 4_096
}
