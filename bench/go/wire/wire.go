// Package wire holds what kube-scheduler and an extender say to each other,
// written out by hand: the types of k8s.io/kube-scheduler/extender/v1 (which
// carry no JSON tags) and as much of v1.Pod as an ordinary pod uses.
package wire

type ExtenderArgs struct {
	Pod       *Pod
	Nodes     *NodeList
	NodeNames *[]string
}

type ExtenderFilterResult struct {
	Nodes                      *NodeList
	NodeNames                  *[]string
	FailedNodes                map[string]string
	FailedAndUnresolvableNodes map[string]string
	Error                      string
}

type HostPriority struct {
	Host  string
	Score int64
}

type NodeList struct {
	Items []struct {
		Metadata ObjectMeta `json:"metadata"`
	} `json:"items"`
}

type Pod struct {
	Kind       string     `json:"kind,omitempty"`
	APIVersion string     `json:"apiVersion,omitempty"`
	Metadata   ObjectMeta `json:"metadata"`
	Spec       PodSpec    `json:"spec"`
	Status     PodStatus  `json:"status"`
}

type ObjectMeta struct {
	Name              string            `json:"name,omitempty"`
	GenerateName      string            `json:"generateName,omitempty"`
	Namespace         string            `json:"namespace,omitempty"`
	UID               string            `json:"uid,omitempty"`
	ResourceVersion   string            `json:"resourceVersion,omitempty"`
	CreationTimestamp *string           `json:"creationTimestamp"`
	Labels            map[string]string `json:"labels,omitempty"`
	Annotations       map[string]string `json:"annotations,omitempty"`
	OwnerReferences   []OwnerReference  `json:"ownerReferences,omitempty"`
	Finalizers        []string          `json:"finalizers,omitempty"`
}

type OwnerReference struct {
	APIVersion         string `json:"apiVersion"`
	Kind               string `json:"kind"`
	Name               string `json:"name"`
	UID                string `json:"uid"`
	Controller         *bool  `json:"controller,omitempty"`
	BlockOwnerDeletion *bool  `json:"blockOwnerDeletion,omitempty"`
}

type PodSpec struct {
	Volumes                       []Volume          `json:"volumes,omitempty"`
	InitContainers                []Container       `json:"initContainers,omitempty"`
	Containers                    []Container       `json:"containers"`
	RestartPolicy                 string            `json:"restartPolicy,omitempty"`
	TerminationGracePeriodSeconds *int64            `json:"terminationGracePeriodSeconds,omitempty"`
	DNSPolicy                     string            `json:"dnsPolicy,omitempty"`
	NodeSelector                  map[string]string `json:"nodeSelector,omitempty"`
	ServiceAccountName            string            `json:"serviceAccountName,omitempty"`
	ServiceAccount                string            `json:"serviceAccount,omitempty"`
	HostNetwork                   bool              `json:"hostNetwork,omitempty"`
	SecurityContext               *SecurityContext  `json:"securityContext,omitempty"`
	Hostname                      string            `json:"hostname,omitempty"`
	Subdomain                     string            `json:"subdomain,omitempty"`
	SchedulerName                 string            `json:"schedulerName,omitempty"`
	Tolerations                   []Toleration      `json:"tolerations,omitempty"`
	PriorityClassName             string            `json:"priorityClassName,omitempty"`
	Priority                      *int32            `json:"priority,omitempty"`
	EnableServiceLinks            *bool             `json:"enableServiceLinks,omitempty"`
	PreemptionPolicy              string            `json:"preemptionPolicy,omitempty"`
}

type Container struct {
	Name                     string           `json:"name"`
	Image                    string           `json:"image,omitempty"`
	Command                  []string         `json:"command,omitempty"`
	Args                     []string         `json:"args,omitempty"`
	WorkingDir               string           `json:"workingDir,omitempty"`
	Ports                    []Port           `json:"ports,omitempty"`
	Env                      []EnvVar         `json:"env,omitempty"`
	Resources                Resources        `json:"resources,omitempty"`
	VolumeMounts             []VolumeMount    `json:"volumeMounts,omitempty"`
	LivenessProbe            *Probe           `json:"livenessProbe,omitempty"`
	ReadinessProbe           *Probe           `json:"readinessProbe,omitempty"`
	TerminationMessagePath   string           `json:"terminationMessagePath,omitempty"`
	TerminationMessagePolicy string           `json:"terminationMessagePolicy,omitempty"`
	ImagePullPolicy          string           `json:"imagePullPolicy,omitempty"`
	SecurityContext          *SecurityContext `json:"securityContext,omitempty"`
}

type Port struct {
	Name          string `json:"name,omitempty"`
	HostPort      int32  `json:"hostPort,omitempty"`
	ContainerPort int32  `json:"containerPort"`
	Protocol      string `json:"protocol,omitempty"`
}

type EnvVar struct {
	Name      string     `json:"name"`
	Value     string     `json:"value,omitempty"`
	ValueFrom *ValueFrom `json:"valueFrom,omitempty"`
}

type ValueFrom struct {
	FieldRef *struct {
		APIVersion string `json:"apiVersion,omitempty"`
		FieldPath  string `json:"fieldPath"`
	} `json:"fieldRef,omitempty"`
}

type Resources struct {
	Limits   map[string]string `json:"limits,omitempty"`
	Requests map[string]string `json:"requests,omitempty"`
}

type VolumeMount struct {
	Name      string `json:"name"`
	ReadOnly  bool   `json:"readOnly,omitempty"`
	MountPath string `json:"mountPath"`
}

type Probe struct {
	Exec *struct {
		Command []string `json:"command,omitempty"`
	} `json:"exec,omitempty"`
	InitialDelaySeconds int32 `json:"initialDelaySeconds,omitempty"`
	TimeoutSeconds      int32 `json:"timeoutSeconds,omitempty"`
	PeriodSeconds       int32 `json:"periodSeconds,omitempty"`
	SuccessThreshold    int32 `json:"successThreshold,omitempty"`
	FailureThreshold    int32 `json:"failureThreshold,omitempty"`
}

type SecurityContext struct {
	Capabilities *struct {
		Add  []string `json:"add,omitempty"`
		Drop []string `json:"drop,omitempty"`
	} `json:"capabilities,omitempty"`
	RunAsUser                *int64 `json:"runAsUser,omitempty"`
	RunAsNonRoot             *bool  `json:"runAsNonRoot,omitempty"`
	AllowPrivilegeEscalation *bool  `json:"allowPrivilegeEscalation,omitempty"`
	FSGroup                  *int64 `json:"fsGroup,omitempty"`
}

type Toleration struct {
	Key               string `json:"key,omitempty"`
	Operator          string `json:"operator,omitempty"`
	Value             string `json:"value,omitempty"`
	Effect            string `json:"effect,omitempty"`
	TolerationSeconds *int64 `json:"tolerationSeconds,omitempty"`
}

type Volume struct {
	Name      string     `json:"name"`
	EmptyDir  *EmptyDir  `json:"emptyDir,omitempty"`
	ConfigMap *ConfigMap `json:"configMap,omitempty"`
	HostPath  *HostPath  `json:"hostPath,omitempty"`
	Projected *Projected `json:"projected,omitempty"`
}

type EmptyDir struct {
	Medium    string `json:"medium,omitempty"`
	SizeLimit string `json:"sizeLimit,omitempty"`
}

type ConfigMap struct {
	Name        string    `json:"name,omitempty"`
	DefaultMode *int32    `json:"defaultMode,omitempty"`
	Items       []KeyPath `json:"items,omitempty"`
}

type KeyPath struct {
	Key  string `json:"key"`
	Path string `json:"path"`
}

type HostPath struct {
	Path string `json:"path"`
	Type string `json:"type,omitempty"`
}

type Projected struct {
	Sources     []ProjectedSource `json:"sources"`
	DefaultMode *int32            `json:"defaultMode,omitempty"`
}

type ProjectedSource struct {
	ServiceAccountToken *struct {
		ExpirationSeconds int64  `json:"expirationSeconds,omitempty"`
		Path              string `json:"path"`
	} `json:"serviceAccountToken,omitempty"`
	ConfigMap *ConfigMap `json:"configMap,omitempty"`
}

type PodStatus struct {
	Phase      string         `json:"phase,omitempty"`
	Conditions []PodCondition `json:"conditions,omitempty"`
	QOSClass   string         `json:"qosClass,omitempty"`
}

type PodCondition struct {
	Type               string  `json:"type"`
	Status             string  `json:"status"`
	LastProbeTime      *string `json:"lastProbeTime"`
	LastTransitionTime *string `json:"lastTransitionTime"`
	Reason             string  `json:"reason,omitempty"`
	Message            string  `json:"message,omitempty"`
}
