package import Access
import Notifications
import Packaging
import RoomRegistry
import Rooms
package import ServerConfiguration
import Streaming
import Support

extension ServerParts {
    /// Applies settings and keys that have been checked. Most services read ``live`` when they use a setting; the services here hold limits of their
    /// own.
    package func apply(_ config: ServerConfig, _ keys: KeyRing) {
        self.live.set(config)
        self.liveKeys.set(keys)
        self.memory.set(config.limits)
        self.connections.set(config)
        self.admission.pushRates.set(config.limits)
        self.rooms.update { settings in
            settings.policy = config.rooms.policy
            settings.historyMs = config.rooms.historyMs
            settings.audit = config.api.audit
            settings.webhooks = config.webhooks.targets
            settings.disk.minFreeBytes = Int64(config.data.minFreeBytes)
        }
        self.recordings.apply(config.recording) { [pushes = self.pushes] in Set(pushes.all.map(\.roomID)) }
    }
}
