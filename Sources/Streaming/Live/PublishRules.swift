package import Relay
import Rooms
package import ServerConfiguration
import Support

extension TakeoverRule {
    package init(_ config: ServerConfig.Rooms, app: String) {
        switch config.duplicatePublishByApp[app] ?? config.duplicatePublish {
        case .identity: self = .sameIdentity
        case .reject: self = .nobody
        case .takeover: self = .anybody
        }
    }

    /// The same rule between nodes.
    var ofClaims: PushClaim.Takeover {
        switch self {
        case .sameIdentity: .sameIdentity
        case .nobody: .nobody
        case .anybody: .anybody
        }
    }
}
