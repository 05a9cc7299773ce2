import LibC
package import Support

/// The start of the next program in this process, once the server has ended. Its listeners stay open from before the end to after the start.
package struct ServerRestart: Sendable {
    package let program: NextProgram
    private let listeners: [(scheme: String, descriptor: CInt)]

    /// Throws when no descriptor is left.
    package init(_ program: NextProgram, _ sockets: ListeningSockets) async throws {
        self.program = program
        self.listeners = try await sockets.kept()
    }

    /// Gives the listeners up.
    package func cancel() { for (_, descriptor) in self.listeners { close(descriptor) } }

    /// Returns only when the program cannot be started, with the reason.
    package func start() -> String {
        let failure = self.program.start(passing: self.listeners.map(\.descriptor), environment: InheritedSockets.kept(self.listeners))
        return errorText(failure)
    }
}
