package import HTTPServer
import HTTPTypes
import NIOCore
package import NIOHTTP1
package import Support

/// Counts the answers of a handoff by route, as ``APIRouter`` counts those of the others.
package struct CountedHandoff: HTTPHandoff {
    let handoff: any HTTPHandoff
    let requests: RequestFigures

    package static func all(_ handoffs: [any HTTPHandoff], _ requests: RequestFigures) -> [any HTTPHandoff] {
        handoffs.map { CountedHandoff(handoff: $0, requests: requests) }
    }

    package func door(_ head: HTTPRequestHead) -> Door? { self.handoff.door(head) }
    package func route(_ head: HTTPRequestHead) -> String { self.handoff.route(head) }

    package func decide(_ request: HTTPHandoffRequest) async -> HTTPHandoffDecision {
        let began = ContinuousClock.now
        let decision = await self.handoff.decide(request)
        let status: HTTPResponse.Status =
            switch decision {
            case .accept(let head, _): .init(code: Int(head.status.code))
            case .refuse(let error): error.status
            }
        self.requests.answered(self.route(request.head), .get, status, after: ContinuousClock.now - began)
        return decision
    }
}

/// Counts the answers of a loop part, as the router counts its own.
package struct CountedLoopPart: HTTPLoopPart {
    let part: any HTTPLoopPart
    let route: String
    let requests: RequestFigures

    package init(_ part: any HTTPLoopPart, route: String, _ requests: RequestFigures) {
        self.part = part
        self.route = route
        self.requests = requests
    }

    package func mayAnswer(_ uri: String) -> Bool { self.part.mayAnswer(uri) }

    package func answer(_ request: HTTPLoopRequest) -> HTTPLoopReply? {
        let began = ContinuousClock.now
        let (requests, route) = (self.requests, self.route)
        switch self.part.answer(request) {
        case nil: return nil
        case .now(let answer):
            requests.answered(route, .get, answer.status, after: ContinuousClock.now - began)
            return .now(answer)
        case .later(let answer):
            answer.whenSuccess { requests.answered(route, .get, $0.status, after: ContinuousClock.now - began) }
            return .later(answer)
        }
    }
}
