package import Hummingbird
import Logging
package import NIOCore

/// A request's context: its connection and its id.
package struct APIContext: RequestContext {
    package var coreContext: CoreRequestContextStorage
    /// Gets ``HTTPBodyWanted`` when a body is read. ``ClientAddresses`` knows its peer.
    package let channel: any Channel

    package init(source: ApplicationRequestContextSource) {
        self.coreContext = .init(source: source)
        self.channel = source.channel
    }
}
