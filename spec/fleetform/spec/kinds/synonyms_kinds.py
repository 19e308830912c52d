"""
What people write in documents that are no runs, and what the same thing is called here.

The words are those of Slurm (slurm.conf, sacctmgr, scontrol), Kubernetes, Terraform and of the
clouds' own tools.
"""

from __future__ import annotations

from collections.abc import Mapping

from fleetform.spec.kinds import BACKEND_TYPES


def _words(**fields: str) -> dict[str, str]:
    """By word, from texts of words by field; a double underscore in a field is a dot."""
    return {
        word: field.replace("__", ".") for field, words in fields.items() for word in words.split()
    }


_EVERY = _words(
    description="comment title summary info display_name",
    tags="labels label tag annotations metadata",
    protect="protected locked deletion_protection prevent_destroy",
)
_CREDENTIALS = "credentials auth api_key access_key token service_account"
_AMOUNTS = {
    "cpu": "cpus cores vcpus ncpus",
    "memory": "mem ram realmemory",
    "disk": "storage tmpdisk",
    "gpu": "gpus gres accelerator accelerators",
}
_CHOICE = _words(
    backends="backend cloud clouds provider providers",
    regions="region location locations",
    availability_zones="availability_zone zone zones az",
    instance_types="instance_type machine_type machine_types vm_size flavor sku",
    spot_policy="spot preemptible use_spot interruptible capacity_type",
    max_price="price max_cost budget",
    idle_duration="idle_timeout autostop termination_idle_time scale_down_delay suspendtime",
    reservation="capacity_reservation reservation_id",
)

KINDS_WORDS: Mapping[str, Mapping[str, str]] = {
    "fleet": {
        **_EVERY,
        # A fleet has a price of its own, for hosts that one pays for anyway.
        **{word: field for word, field in _CHOICE.items() if word != "price"},
        **_words(
            nodes="count size replicas min_nodes max_nodes num_nodes min max capacity scaling",
            ssh_config="ssh hosts on_prem onprem servers machines nodelist",
            kubernetes="k8s cluster",
            sharing="oversubscribe share exclusive",
            blocks="slots partitions shards",
            placement="interconnect network topology affinity",
            update="strategy rolling_update update_strategy",
            run_as="user account",
            runtime="container_runtime engine",
            resources__gpu="gpu gpus gres accelerator accelerators",
            resources__cpu="cpu cpus cores vcpus",
            resources__memory="memory mem ram",
            resources__disk="disk storage",
        ),
    },
    "fleet.local": _words(**_AMOUNTS),
    "fleet.resources": _words(**_AMOUNTS, shm_size="shm"),
    "fleet.update": _words(max_unavailable="max_parallel batch_size max_surge", strategy="type"),
    "fleet.ssh_config": _words(
        user="username login",
        identity_file="key key_file private_key ssh_key_file",
        hosts="nodes host hostnames servers machines nodelist",
        proxy_jump="bastion jump jump_host gateway proxyjump",
        network="cidr subnet",
        host_keys="known_hosts strict_host_key_checking stricthostkeychecking",
    ),
    "fleet.ssh_config.hosts": _words(
        hostname="host name address addr ip node nodename nodehostname nodeaddr",
        user="username login",
        identity_file="key key_file private_key",
        proxy_jump="bastion jump jump_host",
        internal_ip="private_ip internal_address",
        capacity="has resources",
        tags="labels label features feature",
        topology="rack switch",
        drain="drained draining cordon unschedulable reason state",
        lost="dead gone down",
        capacity__cpu="cpu cpus",
        capacity__gpu="gpu gpus gres",
        capacity__memory="memory mem realmemory ram",
    ),
    "fleet.ssh_config.hosts.capacity": _words(**_AMOUNTS),
    "fleet.kubernetes": _words(
        node_selector="nodeselector selector labels affinity",
        priority_class="priorityclassname priority",
        runtime_class="runtimeclassname",
        context="contexts cluster kube_context",
        backend="kubeconfig",
    ),
    "fleet.slurm": _words(
        partitions="partition queue queues",
        qos="quality_of_service",
        constraint="constraints features feature",
        cluster="clusters",
    ),
    "volume": {
        **_EVERY,
        **_words(
            path="directory dir mount_path hostpath host_path local_path",
            fleet="fleets host instance node",
            backend="cloud provider driver csi",
            size="capacity storage size_gb resources",
            volume_id="id external_id handle volumehandle volumename existing",
            claim_name="claim pvc persistentvolumeclaim existingclaim",
            storage_class_name="storage_class storageclass",
            access_modes="access_mode accessmodes mode",
            read_only="readonly ro",
            deletion_policy="reclaim_policy on_delete persistentvolumereclaimpolicy",
            auto_cleanup_duration="ttl expire_after cleanup idle_duration",
            region="regions location",
            availability_zone="zone availability_zones",
        ),
    },
    "gateway": {
        **_EVERY,
        **_words(
            backend="backends cloud provider",
            region="regions location",
            instance_type="instance_types machine_type",
            domain="hostname host wildcard_domain domains",
            certificate="tls ssl cert https",
            public_ip="public internal",
            load_balancer="lb alb",
            replicas="count nodes",
        ),
    },
    "secret": {
        **_EVERY,
        **_words(
            env="from_env variable env_var environment",
            file="from_file path filename",
            credential="systemd",
            vault="hashicorp openbao",
            aws="secrets_manager ssm",
            gcp="secret_manager google",
            kubernetes="k8s secretkeyref",
            projects="project namespaces",
        ),
    },
    "queue": {
        **_EVERY,
        **_words(
            fleets="fleet nodes_list nodelist hosts",
            host_tags="features constraint node_selector",
            tier="prioritytier priority_tier priority priorityjobfactor",
            default_duration="defaulttime default_time",
            max_duration="maxtime max_time timelimit time_limit longest",
            nodes="maxnodes minnodes max_nodes min_nodes",
            allow="allowgroups allowaccounts allow_groups allow_accounts users groups projects",
            preemption="preemptmode preempt_mode preempt",
            preemption__warning="gracetime grace_time",
            state="up down",
        ),
    },
    "queue.preemption": _words(
        warning="grace gracetime grace_time", after="exempt preemptexempttime"
    ),
    "quota": {
        **_EVERY,
        **_words(
            gpus="gpu gres grptres tres accelerators maxtres",
            cpus="cpu cores grpcpus",
            memory="mem grpmem",
            nodes="grpnodes max_nodes",
            jobs="grpjobs maxjobs max_jobs pods",
            waiting="maxsubmitjobs grpsubmitjobs max_submit pending",
            max_duration="maxwall maxwalldurationperjob time_limit",
            gpu_hours="grptresmins gpu_minutes hours",
            budget="price cost dollars max_price",
            shares="fairshare weight share",
            project="account namespace group team",
            queue="partition qos",
            user="users person",
        ),
    },
    "quota.gpu_hours": _words(limit="hours max amount", per="period every each"),
    "quota.budget": _words(limit="dollars max amount", per="period every each"),
    "reservation": {
        **_EVERY,
        **_words(
            fleet="fleets partition queue",
            nodes="nodecnt node_count count size",
            hosts="nodelist host nodes_list instances",
            begin="start starttime start_time",
            end="endtime end_time until",
            duration="length",
            repeat="recurring every schedule frequency",
            users="user allow",
            projects="project accounts account groups group",
            maintenance="flags maint",
            purge_after="purge_comp release_after",
            ignore_running="ignore_jobs force",
        ),
    },
    "project": {
        **_EVERY,
        **_words(
            members="users user member people",
            public="visibility is_public",
            default_queue="default_partition partition",
            queues="partitions queue",
            fleets="fleet",
            grants="permissions privileges allow",
            cost_center="account billing cost_centre",
        ),
    },
    "project.members": _words(user="name username login", role="project_role permission access"),
    "user": {
        **_EVERY,
        **_words(
            emails="email mail",
            logins="login username sso oidc",
            role="global_role adminlevel admin",
            account="unix_account uid accounts os_user",
            ssh_keys="ssh_key public_keys authorized_keys keys",
            signing_keys="gpg_keys signing_key",
            state="active enabled disabled",
        ),
    },
    "policy": {
        **_EVERY,
        **_words(
            match="selector when target targets scope",
            deny="forbid reject block",
            warn="warning message",
            approval="approvals approve review reviewers",
            windows="window freeze hours",
            limits="limit max budget",
        ),
    },
    "policy.match": _words(
        kinds="kind types", names="name", actions="action verbs", projects="project"
    ),
    "policy.approval": _words(count="required number", users="approvers reviewers from"),
    "policy.windows": _words(
        begin="start from", end="stop to until", days="day weekdays", time_zone="tz timezone zone"
    ),
    "policy.limits": _words(price="cost budget dollars", gpus="gpu", changes="change"),
    "profile": {
        **_EVERY,
        **_CHOICE,
        **_words(
            default="is_default",
            fleets="fleet",
            instances="instance nodelist",
            queue="partition queues",
            max_duration="time timeout time_limit walltime",
            retry="retries requeue retry_policy",
            priority="nice qos",
            env="environment variables",
            schedule="cron",
        ),
    },
    **{
        name: {**_EVERY, **_words(creds=_CREDENTIALS, regions="location locations")}
        for name in BACKEND_TYPES
        if name not in {"kubernetes", "slurm"}
    },
    **{
        name: {
            **_EVERY,
            **_words(
                creds=_CREDENTIALS, regions="location locations", project_id="project project_name"
            ),
        }
        for name in ("cudo", "crusoe", "gcp")
    },
    "kubernetes": {
        **_EVERY,
        **_words(
            kubeconfig=f"config kube_config {_CREDENTIALS} creds",
            proxy_jump="jump_pod bastion ssh_host ssh_port",
            contexts="context cluster clusters",
        ),
    },
    "kubernetes.kubeconfig": _words(filename="file path", data="content"),
    "slurm": {**_EVERY, **_words(clusters="cluster hosts login_nodes")},
    "slurm.clusters": _words(
        hostname="host login_node address",
        private_key="identity_file key ssh_key",
        gpu_partitions="partitions",
        user="username login",
    ),
}
"""By type, or type and part."""
