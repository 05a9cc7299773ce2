package import NIOCore
import Sockets
import Synchronization

/// Servers and clients of this process that reach one another in memory, by made-up ports of loopback addresses. Any thread.
///
/// These ports are below those that the system gives to sockets, so that none is both.
package enum MemoryNetwork {
    /// Sets up a server's side of a connection. On its loop, before the connection begins.
    package typealias Accept = @Sendable (any Channel) -> EventLoopFuture<Void>

    private struct State {
        var next = 1_024
        var servers: [Int: Accept] = [:]
    }

    private static let state = Mutex(State())

    /// A new server's port.
    package static func listen(_ accept: @escaping Accept) -> Int {
        self.state.withLock { state in
            state.next += 1
            state.servers[state.next] = accept
            return state.next
        }
    }

    /// Refuses connections to the port from now on.
    package static func leave(_ port: Int) { self.state.withLock { _ = $0.servers.removeValue(forKey: port) } }

    /// Whether a server of this network is at the port.
    package static func has(_ port: Int) -> Bool { self.state.withLock { $0.servers[port] != nil } }

    /// Bytes that wait in each direction: about as many as a loopback socket's buffers hold.
    private static let capacity = 4 << 20

    /// Connects to a server; `initialize` sets the client's side up in the same way. Nil: no server of this network has the port.
    ///
    /// `receiveBuffer`: bytes that wait for the client.
    package static func connect<Result: Sendable>(
        _ port: Int, from address: String? = nil, receiveBuffer: Int? = nil,
        _ initialize: @escaping @Sendable (any Channel) throws -> Result
    ) async throws -> Result? {
        guard let accept = self.state.withLock({ $0.servers[port] }) else { return nil }
        let group = SocketLoopGroup.singleton
        let server = try SocketAddress(ipAddress: "127.0.0.1", port: port)
        let client = try SocketAddress(ipAddress: address ?? "127.0.0.1", port: self.clientPort())
        let (there, back) = (MemoryPipe(capacity: self.capacity), MemoryPipe(capacity: receiveBuffer ?? self.capacity))
        let near = NetworkChannel(on: group.next(), back, there, localAddress: client, remoteAddress: server)
        let far = NetworkChannel(on: group.next(), there, back, localAddress: server, remoteAddress: client)
        there.connect(canRead: { far.wake() }, canWrite: { near.wake() })
        back.connect(canRead: { near.wake() }, canWrite: { far.wake() })
        // The pipes would keep both ends.
        EventLoopFuture.andAllComplete([near.closeFuture, far.closeFuture], on: near.eventLoop).whenComplete { _ in
            there.disconnect()
            back.disconnect()
        }
        far.eventLoop.execute {
            accept(far).whenComplete { result in
                switch result {
                case .success: far.eventLoop.execute { far.activate() }
                case .failure: far.close(promise: nil)
                }
            }
        }
        return try await near.eventLoop.submit {
            do {
                let result = try initialize(near)
                near.activate()
                return result
            } catch {
                near.close(promise: nil)
                throw error
            }
        }.get()
    }

    private static let clients = Atomic<Int>(0)

    /// As the system's, from its range, one after the other.
    private static func clientPort() -> Int { 32_768 + self.clients.wrappingAdd(1, ordering: .relaxed).oldValue % 28_000 }
}
