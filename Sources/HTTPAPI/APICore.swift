package import Access
import HTTPServer
package import Listening
package import Logging
package import NIOCore
package import RoomRegistry
package import ServerConfiguration
package import Support

/// What all calls of the API share, whatever they do. Any thread.
package struct APICore: Sendable {
    package let config: Live<ServerConfig>
    private let keys: Live<KeyRing>
    package let rooms: RoomRegistry
    package let clients: ClientAddresses
    /// Nil until the ports are open.
    package let addresses: @Sendable () -> BoundAddresses?
    package let ledger: MemoryLedger
    package let nodes: NodeForwarder
    package let auditor: Auditor
    package let figures: CallFigures
    /// The OpenAPI document, one block of memory for all answers. Made when it is first asked for.
    package let document: @Sendable () -> ByteBuffer
    package let log: Logger

    package init(
        _ config: Live<ServerConfig>, _ keys: Live<KeyRing>, _ rooms: RoomRegistry, clients: ClientAddresses,
        addresses: @escaping @Sendable () -> BoundAddresses?, ledger: MemoryLedger, nodes: NodeForwarder, auditor: Auditor,
        figures: CallFigures, document: @escaping @Sendable () -> ByteBuffer, log: Logger
    ) {
        self.config = config
        self.keys = keys
        self.rooms = rooms
        self.clients = clients
        self.addresses = addresses
        self.ledger = ledger
        self.nodes = nodes
        self.auditor = auditor
        self.figures = figures
        self.document = document
        self.log = log
    }

    /// Signs links to files, with the present keys.
    package var links: FileLinks { FileLinks(self.keys.current) }
}
