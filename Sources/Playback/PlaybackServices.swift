import Listening
import Logging
package import Packaging
import Rooms
package import ServerConfiguration
package import Streaming
package import Support

/// The services that playing over HTTP uses. Any thread.
package final class PlaybackServices: Sendable {
    let config: Live<ServerConfig>
    let streams: LiveStreams
    let connections: Connections
    let admission: RoomAdmission
    let remuxers: RemuxTable
    let talk: any TalkGateway
    package let sessions: HLSSessions

    package init(
        _ config: Live<ServerConfig>, _ streams: LiveStreams, _ connections: Connections, _ admission: RoomAdmission,
        _ remuxers: RemuxTable,
        _ talk: any TalkGateway, _ sessions: HLSSessions
    ) {
        self.config = config
        self.streams = streams
        self.connections = connections
        self.admission = admission
        self.remuxers = remuxers
        self.talk = talk
        self.sessions = sessions
    }

    var rooms: any LiveRooms { self.admission.rooms }
    var clients: ClientAddresses { self.connections.clients }
    var log: Logger { self.connections.log }
}
