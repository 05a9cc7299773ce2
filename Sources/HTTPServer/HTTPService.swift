import HTTPTypes
package import Hummingbird
import HummingbirdCore
package import Listening
package import Logging
import NIOCore
import ServerConfiguration
import ServiceLifecycle
package import Support
import Synchronization

/// An HTTP port as a service: hands requests to the responder and to the takeovers that it was given. Binds once, reports its port, runs
/// until the group shuts down.
package final class HTTPService: Service, Sendable {
    private let responder: RouterResponder<APIContext>
    private let placement: Placement
    private let gate: AcceptGate
    private let address: HostPort
    private let certificate: CertificateStore?
    private let shared: HTTPServerChannel.Shared
    private let group: any EventLoopGroup
    private let log: Logger
    private let running = Mutex<Running?>(nil)

    /// Serves HTTPS if there is a certificate.
    package init(
        responder: RouterResponder<APIContext>, address: HostPort, certificate: CertificateStore? = nil, shared: HTTPServerChannel.Shared,
        placement: Placement, gate: AcceptGate, group: any EventLoopGroup, log: Logger
    ) {
        self.responder = responder
        self.placement = placement
        self.gate = gate
        self.address = address
        self.certificate = certificate
        self.shared = shared
        self.group = group
        self.log = log
    }

    /// Starts Hummingbird's task, which binds as it runs; `run` joins it.
    package func bind() async throws -> HostPort {
        let bound = self.group.any().makePromise(of: Int.self)
        let address = self.address
        var quiet = self.log
        if self.log.logLevel > .debug { quiet.logLevel = .warning }
        let shared = self.shared
        let (placement, gate) = (self.placement, self.gate)
        let certificate = self.certificate
        let application = Application(
            responder: self.responder,
            server: HTTPServerBuilder { responder in
                guard let certificate else { return HTTPServerChannel(responder: responder, shared: shared) }
                return HTTPSServerChannel(responder: responder, shared: shared, certificate: certificate)
            },
            configuration: .init(address: .hostname(address.host, port: address.port), serverName: "earshot", backlog: 4_096),
            onServerRunning: { channel in
                do {
                    try await channel.setOption(.maxMessagesPerRead, value: UInt(gate.perTurn)).get()
                    try await channel.pipeline.addHandler(placement.handler(), position: .first)
                    try await channel.pipeline.addHandler(gate.handler(), position: .first)
                    bound.succeed(channel.localAddress?.port ?? address.port)
                } catch {
                    bound.fail(error)
                }
            },
            eventLoopGroupProvider: .shared(self.group), logger: quiet)
        let group = ServiceGroup(configuration: .init(services: [application], logger: quiet))
        let task = Task {
            do {
                try await group.run()
                // The server ended before it was bound.
                bound.fail(CancellationError())
            } catch {
                bound.fail(ListenError(scheme: certificate == nil ? "http" : "https", address: address, cause: error))
                throw error
            }
        }
        self.running.withLock { $0 = Running(group: group, task: task) }
        return HostPort(host: address.host, port: try await bound.futureResult.get())
    }

    private struct Running {
        let group: ServiceGroup
        let task: Task<Void, any Error>
    }

    package func run() async throws {
        guard let running = self.running.withLock({ $0 }) else { return }
        try await withGracefulShutdownHandler {
            try await running.task.value
        } onGracefulShutdown: {
            Task { await running.group.triggerGracefulShutdown() }
        }
    }
}
